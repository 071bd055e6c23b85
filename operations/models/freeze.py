from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import TypeVar

from django.db import models
from django.db.models import Q

from fleet.models import Cluster, Pool
from fleet.models.visible import Visible
from people.rights import Scope
from wording.instants import moment
from wording.sentences import capitalized, with_period

M = TypeVar("M", bound=models.Model)


class RestraintQuerySet(Visible[M]):
    """A restraint of a cluster is visible to whoever sees a pool of it."""

    def in_pools(self, pool_ids: Collection[int]) -> Q:
        of_their_clusters = Pool.objects.filter(pk__in=pool_ids).values("cluster")
        return Q(pool__in=pool_ids) | Q(pool=None, cluster__in=of_their_clusters)


def words_of(cluster: Cluster | None, pool: Pool | None) -> str:
    if cluster is None:
        return "the fleet"
    return f"pool {cluster.name}/{pool.name}" if pool else f"cluster {cluster.name}"


class FreezeQuerySet(RestraintQuerySet["Freeze"]):
    """A freeze of the fleet is visible to everybody who sees anything."""

    def seen_within(self, seen: Scope) -> FreezeQuerySet:
        return self.none() if seen.nowhere else super().seen_within(seen)

    def in_pools(self, pool_ids: Collection[int]) -> Q:
        return Q(cluster=None) | super().in_pools(pool_ids)

    def in_force(self, *, now: datetime) -> FreezeQuerySet:
        return self.filter(Q(until=None) | Q(until__gt=now), ended_at=None)

    def binding(self, cluster_id: int) -> FreezeQuerySet:
        return self.filter(Q(cluster=None) | Q(cluster__pk=cluster_id))


class Freeze(models.Model):
    """A freeze: nothing is released in its scope while it is in force."""

    cluster = models.ForeignKey(Cluster, models.PROTECT, null=True, related_name="freezes")  # null: the whole fleet
    pool = models.ForeignKey(Pool, models.PROTECT, null=True, related_name="freezes")  # null: all of the cluster
    by = models.CharField(max_length=150)
    at = models.DateTimeField()
    reason = models.CharField(max_length=1000)
    until = models.DateTimeField(null=True)  # end of the freeze; null: a person has to lift it
    binds_rollbacks = models.BooleanField(default=False)  # False: rollbacks are not bound (hazard Z32)
    is_stop = models.BooleanField(default=False)  # the one stop of the fleet
    key = models.CharField(max_length=100, blank=True)  # the caller's: the same key again is the same freeze
    ended_at = models.DateTimeField(null=True)
    ended_by = models.CharField(max_length=150, blank=True)
    ended_reason = models.CharField(max_length=1000, blank=True)

    objects = FreezeQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["is_stop"], condition=Q(is_stop=True, ended_at__isnull=True), name="one_stop_in_force"
            ),
            models.UniqueConstraint(fields=["by", "key"], condition=~Q(key=""), name="one_freeze_per_key"),
            models.CheckConstraint(
                condition=Q(pool__isnull=True) | Q(cluster__isnull=False), name="a_frozen_pool_names_its_cluster"
            ),
            models.CheckConstraint(
                condition=Q(is_stop=False) | Q(cluster__isnull=True, until__isnull=True, binds_rollbacks=True),
                name="a_stop_is_of_everything",
            ),
        ]
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{'stop' if self.is_stop else 'freeze'} {self.pk} of {self.place}"

    @property
    def mark(self) -> str:
        return f"freeze:{self.pk}"

    @property
    def place(self) -> str:
        """Returns the scope as text. `cluster` and `pool` are read with it."""
        return words_of(self.cluster, self.pool)

    def sentence(self, *, now: datetime) -> str:
        """Returns what it holds back, by whom and why. `cluster` and `pool` are read with it."""
        until = f" until {moment(self.until, now=now)}" if self.until else ""
        what = "stopped" if self.is_stop else "frozen"
        return with_period(f"{capitalized(self.place)} is {what} by {self.by}{until}: {self.reason}")

    def is_in_force(self, *, now: datetime) -> bool:
        """Returns the same as the query `in_force`."""
        return self.ended_at is None and (self.until is None or self.until > now)
