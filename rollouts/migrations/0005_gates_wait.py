from django.db import migrations


def say_wait(apps, schema_editor):
    apps.get_model("rollouts", "Answer").objects.filter(answer="hold").update(answer="wait")


class Migration(migrations.Migration):
    dependencies = [("rollouts", "0004_timeouts")]

    operations = [migrations.RunPython(say_wait, migrations.RunPython.noop)]
