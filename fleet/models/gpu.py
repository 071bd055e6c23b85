from collections.abc import Collection

from django.db import models
from django.db.models import Q

from fleet.models.node import members_of
from fleet.models.visible import Visible


class GpuQuerySet(Visible["Gpu"]):
    by_cluster = "node__cluster"

    def in_pools(self, pool_ids: Collection[int]) -> Q:
        return Q(node__in=members_of(pool_ids))

    def at(self, node_id: int, index: int) -> "GpuQuerySet":
        return self.filter(node__pk=node_id, index=index).select_related("node__cluster__observer")


class Gpu(models.Model):
    """A GPU of a node, by index. Its health and users are known only where a source identifies it."""

    node = models.ForeignKey("fleet.Node", models.CASCADE, related_name="gpus", db_index=False)
    index = models.PositiveSmallIntegerField()
    product = models.CharField(max_length=128, blank=True)
    memory_mib = models.PositiveIntegerField(null=True)
    uuid = models.CharField(max_length=64, blank=True)  # blank: not reported yet

    objects = GpuQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["node", "index"], name="one_gpu_per_index")]
        ordering = ["node_id", "index"]

    def __str__(self) -> str:
        """Needs the loaded node."""
        return f"GPU {self.index} of {self.node.name}"

    @property
    def is_listed(self) -> bool:
        """Tells whether it has a row, that is, whether its node counted it."""
        return not self._state.adding
