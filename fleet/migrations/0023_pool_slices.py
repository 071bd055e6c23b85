from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("fleet", "0022_class_placements"),
    ]

    operations = [
        migrations.AddField("resourceslice", "pool_slices", models.PositiveIntegerField(null=True)),
    ]
