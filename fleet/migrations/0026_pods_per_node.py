from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("fleet", "0025_pods_by_owner"),
    ]

    operations = [
        migrations.AddField(
            model_name="node",
            name="pods_allocatable",
            field=models.PositiveIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="node",
            name="pods_bound",
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
    ]
