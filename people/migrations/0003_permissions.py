from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("people", "0002_sign_in_tries")]

    operations = [migrations.RenameField("apitoken", "deeds", "permissions")]
