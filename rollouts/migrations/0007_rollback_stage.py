from django.db import migrations, models

KINDS = [("canary", "Canary"), ("pool", "Pool"), ("rollback", "Rollback")]


def rename(apps, schema_editor):
    apps.get_model("rollouts", "Stage").objects.filter(kind="back").update(kind="rollback", name="Rollback")


class Migration(migrations.Migration):
    dependencies = [("rollouts", "0006_baseline")]

    operations = [
        migrations.AlterField("stage", "kind", models.CharField(choices=KINDS, max_length=16)),
        migrations.RunPython(rename, migrations.RunPython.noop),
    ]
