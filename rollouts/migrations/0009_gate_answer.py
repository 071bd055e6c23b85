from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("rollouts", "0008_writer_lease")]

    operations = [migrations.RenameModel("Answer", "GateAnswer")]
