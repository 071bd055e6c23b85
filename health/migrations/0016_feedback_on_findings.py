from django.db import migrations


def call_it_unassigned(apps, _) -> None:
    apps.get_model("health", "FindingAct").objects.filter(verb="release").update(verb="unassign")


class Migration(migrations.Migration):
    dependencies = [("health", "0015_allocated_hours")]

    operations = [
        migrations.RenameField("finding", "verdict", "feedback"),
        migrations.RenameField("finding", "verdict_by", "feedback_by"),
        migrations.RenameField("finding", "verdict_because", "feedback_because"),
        migrations.RunPython(call_it_unassigned, migrations.RunPython.noop),
    ]
