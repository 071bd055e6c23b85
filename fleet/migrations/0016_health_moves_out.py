from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("fleet", "0015_node_sums")]

    operations = [migrations.DeleteModel("CrashLog"), migrations.DeleteModel("Finding")]
