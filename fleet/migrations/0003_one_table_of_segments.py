import django.db.models.deletion
from django.db import migrations, models

ALIKE = (
    "cluster", "pools", "gpu_product", "gpu_vendor", "driver_version", "kernel", "os_image", "container_runtime",
    "region", "zone", "instance_type", "capacity_type", "mig_strategy", "sharing", "nvlink_domain", "is_driver_said",
    "driver_daemon_set", "driver_owner", "kubelet_version", "plugin_config", "mig_config",
)  # fmt: skip
LENGTHS = {
    "gpu_product": 128,
    "gpu_vendor": 16,
    "driver_version": 64,
    "kernel": 128,
    "os_image": 128,
    "container_runtime": 128,
    "region": 64,
    "zone": 64,
    "instance_type": 64,
    "capacity_type": 16,
    "mig_strategy": 16,
    "sharing": 16,
    "nvlink_domain": 128,
    "driver_daemon_set": 64,
    "driver_owner": 253,
    "kubelet_version": 64,
    "plugin_config": 128,
    "mig_config": 128,
}
SUMS = (
    "uncounted", "physical_whole", "physical_mig", "physical_partitioned", "physical_time_slicing", "physical_mps",
    "physical_shared", "physical_virtual", "physical_not_offered",
)  # fmt: skip


class Migration(migrations.Migration):
    """What is in them is counted anew by the worker that begins after it."""

    dependencies = [("fleet", "0002_sums_of_segments_and_drivers")]

    operations = [
        migrations.DeleteModel(name="DriverSums"),
        migrations.DeleteModel(name="SegmentSums"),
        migrations.CreateModel(
            name="SegmentSums",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("nodes", models.IntegerField()),
                ("pools", models.TextField(blank=True)),
                *((name, models.CharField(blank=True, max_length=length)) for name, length in LENGTHS.items()),
                ("is_driver_said", models.BooleanField()),
                *((name, models.IntegerField()) for name in SUMS),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="fleet.cluster"
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=ALIKE, name="one_row_of_segment_sums_per_likeness")]
            },
        ),
    ]
