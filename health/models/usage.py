"""GPU-hours of each UTC day by use (`health.telemetry.usage.GpuUse`). `health.sources.usage` adds each hour once."""

from typing import Any

from django.db import models

from fleet.models.sums import AddedUp, SumsQuerySet, one_row_per_likeness

NAMESPACE_ALIKE = ("cluster", "day", "pools", "namespace")
OWNER_ALIKE = (*NAMESPACE_ALIKE, "workload")


class UsageDay(models.Model):
    """A UTC day of a cluster, and its hours that are added up."""

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="usage_days", db_index=False)
    day = models.DateField()
    hours = models.PositiveIntegerField(default=0)  # one bit for each hour: 1 is from 00:00 to 01:00
    uncounted = models.PositiveIntegerField(default=0)  # nodes without a known number of GPUs, in the last of them

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "day"], name="one_usage_day")]
        indexes = [models.Index(fields=["day"])]


class UsageQuerySet(SumsQuerySet[Any]):
    """Rows are visible with their cluster, or with one of the pools that their nodes were in."""


class UsageSums(AddedUp):
    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="+", db_index=False)
    day = models.DateField()
    pools = models.TextField(blank=True)  # the keys of all pools of the nodes in that hour: 3,17; blank: none
    namespace = models.CharField(max_length=253, blank=True)  # blank: no pod had them
    used = models.FloatField(default=0)
    idle = models.FloatField(default=0)
    unmeasured = models.FloatField(default=0)
    unallocated = models.FloatField(default=0)
    out_of_service = models.FloatField(default=0)
    unknown = models.FloatField(default=0)
    quarantined = models.FloatField(default=0, db_default=0)
    in_repair = models.FloatField(default=0, db_default=0)
    rated = models.FloatField(default=0, db_default=0)  # of `used`: hours for which `under_used` was estimated
    under_used = models.FloatField(default=0, db_default=0)  # part of `rated` that well-used GPUs would not need

    objects: Any = UsageQuerySet.as_manager()

    class Meta:
        abstract = True


class NamespaceUsage(UsageSums):
    """The sums of `OwnerUsage` over workloads, so that a page of pools, days or namespaces reads few rows."""

    alike = NAMESPACE_ALIKE

    class Meta:
        constraints = [one_row_per_likeness(NAMESPACE_ALIKE, "namespace_usage")]
        indexes = [models.Index(fields=["day"])]


class OwnerUsage(UsageSums):
    alike = OWNER_ALIKE

    # `JobSet/train`: the topmost owner, and in hours of version 0.1 the direct one; blank: nothing controls the pod
    workload = models.CharField(max_length=320, blank=True)

    class Meta:
        constraints = [one_row_per_likeness(OWNER_ALIKE, "owner_usage")]
        indexes = [models.Index(fields=["day"]), models.Index(fields=["namespace", "workload", "day"])]


class WorkloadActivity(AddedUp):
    """The activity of GPUs that a workload had alone (`health.telemetry.activity`), in GPU-hours and weighted sums."""

    alike = OWNER_ALIKE

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="+", db_index=False)
    day = models.DateField()
    pools = models.TextField(blank=True)  # as in `OwnerUsage`
    namespace = models.CharField(max_length=253, blank=True)
    workload = models.CharField(max_length=320, blank=True)
    busy_hours = models.FloatField(default=0)  # with known utilisation
    busy_sum = models.FloatField(default=0)
    tensor_hours = models.FloatField(default=0)
    tensor_sum = models.FloatField(default=0)
    bandwidth_hours = models.FloatField(default=0)
    bandwidth_sum = models.FloatField(default=0)
    memory_hours = models.FloatField(default=0)  # with a known peak of whole cards
    fits_eighth = models.FloatField(default=0)  # of these, hours in which an eighth of the card was enough
    fits_quarter = models.FloatField(default=0)
    fits_half = models.FloatField(default=0)
    energy_hours = models.FloatField(default=0)  # with known power
    energy_kwh = models.FloatField(default=0)

    objects: Any = UsageQuerySet.as_manager()

    class Meta:
        constraints = [one_row_per_likeness(OWNER_ALIKE, "workload_activity")]
        indexes = [models.Index(fields=["day"])]
