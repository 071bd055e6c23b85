from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("health", "0012_finding_muted_at"),
    ]

    operations = [
        migrations.AlterField(model_name="gpuhour", name="xids", field=models.PositiveIntegerField(null=True)),
    ]
