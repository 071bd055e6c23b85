from django.db import models

from fleet.models.sums import Sums, SumsQuerySet, one_row_per_likeness

ALIKE = (
    "cluster", "pools", "gpu_product", "gpu_vendor", "driver_version", "kernel", "os_image", "container_runtime",
    "region", "zone", "instance_type", "capacity_type", "mig_strategy", "sharing", "nvlink_domain",
    "is_driver_reported", "driver_daemon_set", "driver_owner", "kubelet_version", "plugin_config", "mig_config",
)  # fmt: skip


class SegmentSumsQuerySet(SumsQuerySet["SegmentSums"]):
    """Rows are visible with their cluster, or with one of their pools."""


class SegmentSums(Sums):
    """Counters by all attributes of GPU nodes except state: hardware, software and configuration."""

    alike = ALIKE
    is_of_gpu_nodes = True

    gpu_vendor = models.CharField(max_length=16, blank=True)
    kernel = models.CharField(max_length=128, blank=True)
    os_image = models.CharField(max_length=128, blank=True)
    container_runtime = models.CharField(max_length=128, blank=True)
    region = models.CharField(max_length=64, blank=True)
    zone = models.CharField(max_length=64, blank=True)
    instance_type = models.CharField(max_length=64, blank=True)
    capacity_type = models.CharField(max_length=16, blank=True)
    mig_strategy = models.CharField(max_length=16, blank=True)
    sharing = models.CharField(max_length=16, blank=True)
    nvlink_domain = models.CharField(max_length=128, blank=True)
    driver_daemon_set = models.CharField(max_length=64, blank=True)
    driver_owner = models.CharField(max_length=253, blank=True)
    kubelet_version = models.CharField(max_length=64, blank=True)
    plugin_config = models.CharField(max_length=128, blank=True)
    mig_config = models.CharField(max_length=128, blank=True)

    objects = SegmentSumsQuerySet.as_manager()

    class Meta:
        constraints = [one_row_per_likeness(ALIKE, "segment_sums")]
