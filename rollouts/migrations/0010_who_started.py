from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("rollouts", "0009_break_glass"),
    ]

    operations = [
        migrations.AddField(
            model_name="plan",
            name="started_by",
            field=models.CharField(blank=True, default="", max_length=150),
        ),
    ]
