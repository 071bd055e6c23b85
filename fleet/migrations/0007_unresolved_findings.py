from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("fleet", "0006_approval")]

    operations = [migrations.AddField("node", "unresolved", models.PositiveIntegerField(default=0))]
