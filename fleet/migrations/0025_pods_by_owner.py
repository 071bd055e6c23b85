from django.db import migrations, models

from edges.online_index import AddIndexOnline


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("fleet", "0024_node_topologies"),
    ]

    operations = [
        AddIndexOnline(
            model_name="pod",
            index=models.Index(
                condition=models.Q(("is_tenant", True)),
                fields=[
                    "cluster",
                    "namespace",
                    "owner_kind",
                    "owner_name",
                    "owner_uid",
                    "state_code",
                    "restarts",
                    "crashed_at",
                    "node",
                    "gpus",
                    "created_at",
                ],
                name="gpu_pods_by_owner",
            ),
        ),
        AddIndexOnline(
            model_name="node",
            index=models.Index(condition=models.Q(("is_ready", None)), fields=["cluster"], name="silent_nodes"),
        ),
    ]
