import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("fleet", "0014_epoch"),
    ]

    operations = [
        migrations.CreateModel(
            name="NodeSums",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("pools", models.TextField(blank=True)),
                ("is_gpu_node", models.BooleanField()),
                ("state_code", models.IntegerField()),
                ("driver_version", models.CharField(blank=True, max_length=64)),
                ("is_driver_said", models.BooleanField()),
                ("gpu_product", models.CharField(blank=True, max_length=128)),
                ("nodes", models.IntegerField()),
                ("ready", models.IntegerField()),
                ("not_ready", models.IntegerField()),
                ("readiness_unknown", models.IntegerField()),
                ("unschedulable", models.IntegerField()),
                ("held", models.IntegerField()),
                ("gpus_named", models.IntegerField()),
                ("gpus_named_now", models.IntegerField()),
                ("uncounted", models.IntegerField()),
                ("physical_whole", models.IntegerField()),
                ("physical_mig", models.IntegerField()),
                ("physical_partitioned", models.IntegerField()),
                ("physical_time_slicing", models.IntegerField()),
                ("physical_mps", models.IntegerField()),
                ("physical_shared", models.IntegerField()),
                ("physical_virtual", models.IntegerField()),
                ("physical_not_offered", models.IntegerField()),
                ("gpus_expected", models.IntegerField()),
                ("gpus_allocatable", models.IntegerField()),
                ("gpus_allocated", models.IntegerField()),
                ("gpus_free", models.IntegerField()),
                ("gpus_away", models.IntegerField()),
                ("slices_expected", models.IntegerField()),
                ("slices_allocatable", models.IntegerField()),
                ("slices_allocated", models.IntegerField()),
                ("slices_free", models.IntegerField()),
                ("slices_away", models.IntegerField()),
                ("shares_expected", models.IntegerField()),
                ("shares_allocatable", models.IntegerField()),
                ("shares_allocated", models.IntegerField()),
                ("shares_free", models.IntegerField()),
                ("shares_away", models.IntegerField()),
                ("cpu_named", models.IntegerField()),
                ("memory_named", models.IntegerField()),
                ("silent", models.IntegerField()),
                ("cpu_allocatable_m", models.BigIntegerField()),
                ("cpu_tenants_m", models.BigIntegerField()),
                ("cpu_operands_m", models.BigIntegerField()),
                ("cpu_others_m", models.BigIntegerField()),
                ("memory_allocatable_bytes", models.BigIntegerField()),
                ("memory_tenants_bytes", models.BigIntegerField()),
                ("memory_operands_bytes", models.BigIntegerField()),
                ("memory_others_bytes", models.BigIntegerField()),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="node_sums", to="fleet.cluster"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=(
                            "cluster",
                            "pools",
                            "is_gpu_node",
                            "state_code",
                            "driver_version",
                            "is_driver_said",
                            "gpu_product",
                        ),
                        name="one_row_of_sums_per_likeness",
                    )
                ],
            },
        ),
    ]
