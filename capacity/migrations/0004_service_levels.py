import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("capacity", "0003_owners_and_cluster_samples"),
        ("fleet", "0024_node_topologies"),
    ]

    operations = [
        migrations.CreateModel(
            name="PoolServiceLevel",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("indicator", models.CharField(blank=True, max_length=64)),
                ("expression", models.CharField(blank=True, max_length=1000)),
                ("samples", models.CharField(blank=True, max_length=1000)),
                ("unit", models.CharField(blank=True, max_length=16)),
                ("is_higher_better", models.BooleanField(default=False)),
                ("by", models.CharField(max_length=150)),
                ("at", models.DateTimeField()),
                (
                    "pool",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="service_level", to="fleet.pool"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="ServiceLevelHour",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("hour", models.DateTimeField()),
                ("full_value", models.FloatField(null=True)),
                ("full_samples", models.FloatField(default=0)),
                ("other_value", models.FloatField(null=True)),
                ("other_samples", models.FloatField(default=0)),
                ("trouble", models.CharField(blank=True, max_length=200)),
                (
                    "pool",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="fleet.pool"
                    ),
                ),
            ],
            options={
                "ordering": ["hour"],
                "indexes": [models.Index(fields=["hour"], name="capacity_se_hour_84ae94_idx")],
                "constraints": [
                    models.UniqueConstraint(fields=("pool", "hour"), name="one_service_level_per_pool_and_hour")
                ],
            },
        ),
    ]
