from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("fleet", "0003_mig_changes_and_unhealthy_gpus")]

    operations = [
        migrations.AddField("observer", "failures", models.PositiveIntegerField(default=0)),
        migrations.AddField("observer", "failing_since", models.DateTimeField(null=True)),
        migrations.AddField("observer", "next_look_at", models.DateTimeField(null=True)),
    ]
