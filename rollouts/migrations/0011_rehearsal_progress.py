from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("rollouts", "0010_cordon_affected"),
    ]

    operations = [
        migrations.AddField(
            model_name="rehearsal",
            name="progress",
            field=models.JSONField(null=True),
        ),
    ]
