from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("rollouts", "0008_gate_look"),
    ]

    operations = [
        migrations.AddField(
            model_name="gatelook",
            name="digest",
            field=models.CharField(db_default="", default="", max_length=64),
        ),
    ]
