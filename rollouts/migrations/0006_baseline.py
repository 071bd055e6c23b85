from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("rollouts", "0005_gates_wait")]

    operations = [migrations.RenameField("target", "before", "baseline")]
