from collections.abc import Collection
from datetime import timedelta

from django.db import models
from django.db.models import Q

from fleet.models import Pool
from fleet.models.visible import Visible
from health.rules.limits import A_POOL, Limits


class PoolLimitsQuerySet(Visible["PoolLimits"]):
    """Limits of pools, visible with the pool."""

    by_cluster = "pool__cluster"

    def in_pools(self, pool_ids: Collection[int]) -> Q:
        return Q(pool__in=pool_ids)


class PoolLimits(models.Model):
    """A pool's own limits of a rule, for warnings and critical findings."""

    pool = models.ForeignKey(Pool, models.CASCADE, related_name="+")
    rule = models.CharField(max_length=63)
    warn = models.FloatField()  # in the unit of its rule's scale
    critical = models.FloatField(null=True)  # null: nothing of it is
    warn_after_s = models.PositiveIntegerField()
    critical_after_s = models.PositiveIntegerField(default=0)
    by = models.CharField(max_length=150)
    at = models.DateTimeField()
    reason = models.CharField(max_length=1000)
    version = models.PositiveIntegerField(default=1)  # one more with each change

    objects = PoolLimitsQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["pool", "rule"], name="one_set_of_limits_per_pool_and_rule")]
        ordering = ["rule", "pool"]

    def __str__(self) -> str:
        return f"{self.rule} in pool {self.pool.cluster.name}/{self.pool.name}"

    @property
    def limits(self) -> Limits:
        return Limits(
            self.warn,
            self.critical,
            timedelta(seconds=self.warn_after_s),
            timedelta(seconds=self.critical_after_s),
            whose=A_POOL,
        )
