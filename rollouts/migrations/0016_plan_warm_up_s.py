from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("rollouts", "0015_service_level_gate")]

    operations = [
        migrations.AddField("plan", "warm_up_s", models.FloatField(null=True)),
    ]
