from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("fleet", "0012_state_column")]

    operations = [migrations.RenameField("cluster", "stranger_uid", "foreign_uid")]
