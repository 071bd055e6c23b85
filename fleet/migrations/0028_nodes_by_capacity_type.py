from django.db import migrations, models

from edges.online_index import AddIndexOnline


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("fleet", "0027_volume_limits"),
    ]

    operations = [
        AddIndexOnline(
            model_name="node",
            index=models.Index(fields=["is_gpu_node", "capacity_type", "cluster"], name="nodes_by_capacity_type"),
        ),
    ]
