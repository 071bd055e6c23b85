from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("rollouts", "0011_rehearsal_progress"),
    ]

    operations = [
        migrations.AddField(
            model_name="testjob",
            name="ran_s",
            field=models.FloatField(null=True),
        ),
    ]
