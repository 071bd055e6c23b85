"""The common part of freezes and windows: visibility, and the scope as text."""

from collections.abc import Collection
from typing import TypeVar

from django.db import models
from django.db.models import Q

from fleet.models import Cluster, Pool
from fleet.models.visible import Visible

M = TypeVar("M", bound=models.Model)


class RestraintQuerySet(Visible[M]):
    """A restraint of a cluster is visible to whoever sees a pool of it."""

    def in_pools(self, pool_ids: Collection[int]) -> Q:
        of_their_clusters = Pool.objects.filter(pk__in=pool_ids).values("cluster")
        return Q(pool__in=pool_ids) | Q(pool=None, cluster__in=of_their_clusters)


def words_of(cluster: Cluster | None, pool: Pool | None) -> str:
    """Returns the scope as text."""
    if cluster is None:
        return "the fleet"
    return f"pool {cluster.name}/{pool.name}" if pool else f"cluster {cluster.name}"
