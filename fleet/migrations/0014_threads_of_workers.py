from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("fleet", "0013_whose_cordon")]

    operations = [migrations.RenameField("observingworker", "slots", "threads")]
