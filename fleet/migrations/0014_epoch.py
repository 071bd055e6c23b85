from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("fleet", "0013_foreign_uid")]

    operations = [migrations.RenameField("observer", "turn", "epoch")]
