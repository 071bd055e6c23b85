import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("fleet", "0023_pool_slices"),
    ]

    operations = [
        migrations.CreateModel(
            name="NodeTopology",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("uid", models.CharField(max_length=64)),
                ("changed_at", models.DateTimeField()),
                ("name", models.CharField(max_length=253)),
                ("policy", models.CharField(blank=True, max_length=32)),
                ("zones", models.JSONField(default=list)),
                (
                    "cluster",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="node_topologies",
                        to="fleet.cluster",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["cluster", "name"], name="fleet_nodet_cluster_8faec8_idx")],
                "constraints": [
                    models.UniqueConstraint(fields=("cluster", "uid"), name="one_node_topology_per_uid"),
                ],
            },
        ),
    ]
