from collections.abc import Collection
from typing import Self

from django.db import models
from django.db.models import Q

from fleet.models.visible import Visible
from health.telemetry.service_levels.definition import ServiceLevelDefinition
from health.telemetry.service_levels.expression import LONGEST
from people.rights import Scope


class FreeGpuFigures(models.Model):
    """Free GPUs at the end of an hour (`capacity.free_gpus`)."""

    hour = models.DateTimeField()  # end of the hour; the row was written within 15 minutes after it
    free = models.FloatField()
    usable = models.FloatField()  # by the usual pod; the rest is stranded
    stranded = models.JSONField(default=dict)  # by cause

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.free:g} free GPUs at {self.hour}"


class FreeGpuSample(FreeGpuFigures):
    """The free GPUs of a pool. At most one row an hour and pool."""

    pool = models.ForeignKey("fleet.Pool", models.CASCADE, related_name="free_gpu_samples", db_index=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["pool", "hour"], name="one_free_gpu_sample_per_pool_and_hour")]
        indexes = [models.Index(fields=["hour"])]
        ordering = ["hour"]


class ClusterFreeGpuSample(FreeGpuFigures):
    """The free GPUs of a whole cluster: nodes may be in several pools, or in none. At most one row an hour."""

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="free_gpu_samples", db_index=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cluster", "hour"], name="one_free_gpu_sample_per_cluster_and_hour")
        ]
        indexes = [models.Index(fields=["hour"])]
        ordering = ["hour"]


class WorkloadOwner(models.Model):
    """The owner of a workload by the label of its pods (`capacity.usage.workload_owners`), as last recorded."""

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="+", db_index=False)
    namespace = models.CharField(max_length=253)
    workload = models.CharField(max_length=320)  # as in `OwnerUsage`: the topmost owner
    owner = models.CharField(max_length=63)  # the value of the label
    seen_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cluster", "namespace", "workload"], name="one_owner_per_workload")
        ]
        indexes = [models.Index(fields=["seen_at"])]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.workload}: {self.owner}"


class GpuPriceQuerySet(Visible["GpuPrice"]):
    """A pool's price is visible with its pool; the price of a product to everybody with a role."""

    by_cluster = "pool__cluster"

    def seen_within(self, seen: Scope) -> Self:
        return self.none() if seen.nowhere else super().seen_within(seen)

    def in_pools(self, pool_ids: Collection[int]) -> Q:
        return Q(pool__in=pool_ids) | Q(pool=None)


class GpuPrice(models.Model):
    """The price of a GPU-hour from a day on (`capacity.usage.price_book`), of a pool or of a product."""

    pool = models.ForeignKey("fleet.Pool", models.CASCADE, null=True, related_name="gpu_prices")
    product = models.CharField(max_length=253, blank=True)  # as its nodes' label; blank: of a pool
    capacity_type = models.CharField(max_length=16, blank=True)  # on-demand, reserved, spot, owned; blank: any
    currency = models.CharField(max_length=3, blank=True)  # blank: the one currency of this installation
    amount = models.DecimalField(max_digits=10, decimal_places=4, null=True)  # null: none from that day on
    valid_from = models.DateField()
    source = models.CharField(max_length=200, blank=True)  # a contract or a price list, for people
    by = models.CharField(max_length=150)
    at = models.DateTimeField()

    objects = GpuPriceQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["pool", "valid_from"], name="one_price_per_pool_and_day"),
            models.UniqueConstraint(
                fields=["product", "capacity_type", "valid_from"],
                condition=Q(pool=None),
                name="one_price_per_product_and_day",
            ),
            models.CheckConstraint(condition=Q(amount__gte=0) | Q(amount=None), name="no_negative_price"),
        ]
        ordering = ["-valid_from", "-pk"]

    def __str__(self) -> str:
        return f"{self.amount} {self.currency}".strip()

    @property
    def pool_name(self) -> str:
        return f"{self.pool.cluster.name}/{self.pool.name}" if self.pool else ""


class PoolServiceLevel(models.Model):
    """The service level by which the placement of a pool is judged (`capacity.placements.service_level_changes`)."""

    pool = models.OneToOneField("fleet.Pool", models.CASCADE, related_name="service_level")
    indicator = models.CharField(max_length=64, blank=True)  # a ready-made expression; blank: an own one
    expression = models.CharField(max_length=LONGEST, blank=True)
    samples = models.CharField(max_length=LONGEST, blank=True)  # base of the own expression; blank: the scrapes count
    unit = models.CharField(max_length=16, blank=True)  # of the own expression
    is_higher_better = models.BooleanField(default=False)  # of the own expression
    by = models.CharField(max_length=150)
    at = models.DateTimeField()

    def __str__(self) -> str:
        return f"service level of {self.pool}"

    @property
    def definition(self) -> ServiceLevelDefinition:
        """Returns what to measure.

        :raises ValueError: when this version does not know the indicator
        """
        return ServiceLevelDefinition(
            self.indicator, self.expression, self.samples, self.unit, is_own_higher_better=self.is_higher_better
        )


class ServiceLevelHour(models.Model):
    """The service level of a pool in one hour, on full and on other nodes. At most one row an hour and pool."""

    pool = models.ForeignKey("fleet.Pool", models.CASCADE, related_name="+", db_index=False)
    hour = models.DateTimeField()  # end of the hour
    full_value = models.FloatField(null=True)  # null: no value
    full_samples = models.FloatField(default=0)
    other_value = models.FloatField(null=True)
    other_samples = models.FloatField(default=0)
    trouble = models.CharField(max_length=200, blank=True)  # why a value is missing although pods ran
    # The same of the pods of one class, by class with pods (`capacity.placements.pod_classes`): full_value,
    # full_samples, other_value, other_samples, trouble.
    classes = models.JSONField(default=dict, db_default={})

    class Meta:
        constraints = [models.UniqueConstraint(fields=["pool", "hour"], name="one_service_level_per_pool_and_hour")]
        indexes = [models.Index(fields=["hour"])]
        ordering = ["hour"]

    def __str__(self) -> str:
        return f"service level of pool {self.pool_id} at {self.hour}"
