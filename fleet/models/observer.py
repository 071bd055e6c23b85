from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, models, transaction
from django.db.models import Q
from django.db.models.functions import Coalesce

LEASE = timedelta(seconds=30)
FIRST_WAIT = timedelta(seconds=1)
LONGEST_WAIT = timedelta(minutes=5)  # a dead address costs a thread 10 s: a hundred of them then cost four threads
ONE_IN = timedelta(minutes=1)  # how often one that did not answer is tried while others wait for a thread
GRACE = timedelta(seconds=15)  # from one lease to the next: longer, and nobody has a thread for it


class LostLease(Exception):
    """Another worker has taken this cluster since. Whatever we meant to write is not ours to write."""


def wait_after(failures: int, *, share: float) -> timedelta:
    """How long a cluster that did not answer so many times is left alone. `share`: of the jitter, from 0 to 1."""
    whole = min(FIRST_WAIT * 2 ** min(max(failures, 1) - 1, 16), LONGEST_WAIT)
    return whole * (0.5 + share / 2)


class ObserverQuerySet(models.QuerySet["Observer"]):
    def due(self, *, now: datetime) -> ObserverQuerySet:
        """Those whose watch lease anybody may take."""
        return self.filter(Q(next_look_at=None) | Q(next_look_at__lte=now), lease_until__lt=now)


class Observer(models.Model):
    """Who holds the watch lease of a cluster. Every write under it asserts its epoch; one that ran out is anybody's."""

    cluster = models.OneToOneField("fleet.Cluster", models.CASCADE, related_name="observer")
    epoch = models.PositiveBigIntegerField(default=0)  # how often the lease was taken: 0 is never
    owner = models.CharField(max_length=100, blank=True)
    lease_until = models.DateTimeField()
    batch = models.PositiveBigIntegerField(default=0)  # the flushes so far: the sequence number browsers see
    batch_at = models.DateTimeField(null=True)
    lag_ms = models.PositiveIntegerField(default=0)  # how long the oldest change of the last flush had waited
    behind_since = models.DateTimeField(null=True)  # since when the lag is more than a page may hide; null: it is not
    clock_skew_s = models.FloatField(null=True)  # how far the API server's clock is ahead of ours; null: not measured
    failures = models.PositiveIntegerField(default=0)  # leases in a row in which it did not answer
    failing_since = models.DateTimeField(null=True)  # when the first of those was; null: it answered last time
    next_look_at = models.DateTimeField(null=True)  # not before; null: as soon as the lease is over

    objects = ObserverQuerySet.as_manager()

    @classmethod
    def take(cls, cluster_id: int, *, epoch: int, owner: str, now: datetime) -> int | None:
        """Take the lease after `epoch`. None: somebody holds it, it is not due, or the message is an old one."""
        free = cls.objects.due(now=now).filter(cluster_id=cluster_id, epoch=epoch)
        won = free.update(epoch=epoch + 1, owner=owner, lease_until=now + LEASE)
        return epoch + 1 if won else None

    @classmethod
    def keep(cls, cluster_id: int, *, epoch: int, now: datetime, flushed: bool, **lag: Any) -> None:
        """Move the lease, and count the flush it belongs to. Call it inside the flush's own transaction.

        `lag`: `lag_ms` and `behind_since`, as of this flush.

        :raises LostLease: when the lease is somebody else's by now
        """
        moved: dict[str, Any] = {"lease_until": now + LEASE, **lag}
        if flushed:
            moved |= {"batch": models.F("batch") + 1, "batch_at": now}
        if not cls.objects.filter(cluster_id=cluster_id, epoch=epoch).update(**moved):
            raise LostLease(f"epoch {epoch} of cluster {cluster_id} is over")

    @classmethod
    def lock(cls, cluster_id: int) -> None:
        """Nobody else writes a node of this cluster until the transaction ends: every flush has this row."""
        if connection.features.has_select_for_update:  # a transaction of SQLite has the whole database
            list(cls.objects.select_for_update(no_key=True).filter(cluster=cluster_id).values_list("pk"))

    @classmethod
    def batch_of(cls, cluster_id: int) -> int:
        """The number of the newest flush. 0: nobody has watched it yet."""
        return cls.objects.filter(cluster_id=cluster_id).values_list("batch", flat=True).first() or 0

    @classmethod
    def batches_of(cls, clusters: Collection[int]) -> dict[int, int]:
        """`batch_of` each, by cluster."""
        batches = cls.objects.filter(cluster__in=clusters).values_list("cluster_id", "batch")
        return dict.fromkeys(clusters, 0) | dict(batches)

    @classmethod
    def give_up(cls, cluster_id: int, *, epoch: int, now: datetime) -> None:
        """Give it up before its time, so that nobody has to wait until it runs out."""
        with transaction.atomic():
            cls.objects.filter(cluster_id=cluster_id, epoch=epoch).update(lease_until=now - timedelta(seconds=1))

    @classmethod
    def gives_way(cls, cluster_id: int, *, now: datetime) -> bool:
        """Whether a cluster that did not answer last time, or was never asked, leaves this thread to one that did.

        Not for ever: while such ones wait, another is tried once in a minute.
        """
        answered = Q(failures=0, epoch__gt=0)
        if cls.objects.filter(answered, cluster_id=cluster_id).exists():
            return False
        if not cls.objects.due(now=now).filter(answered).exists():
            return False
        others = cls.objects.filter(failures__gt=0, lease_until__gt=now - ONE_IN).exclude(cluster_id=cluster_id)
        return others.exists()

    @classmethod
    def back_off(cls, cluster_id: int, *, epoch: int, share: float, now: datetime) -> timedelta:
        """Give the thread back, and wait longer each time that it does not answer.

        :raises LostLease: when the lease is somebody else's by now
        """
        failures = (cls.objects.filter(cluster_id=cluster_id).values_list("failures", flat=True).first() or 0) + 1
        wait = wait_after(failures, share=share)
        mine = cls.objects.filter(cluster_id=cluster_id, epoch=epoch)
        since = Coalesce("failing_since", models.Value(now, models.DateTimeField()))
        given = {"lease_until": now - timedelta(seconds=1), "next_look_at": now + wait, "failures": failures}
        if not mine.update(failing_since=since, **given):
            raise LostLease(f"epoch {epoch} of cluster {cluster_id} is over")
        return wait

    @classmethod
    def note_answer(cls, cluster_id: int, *, epoch: int) -> None:
        """It was watched: whatever failed before is over."""
        failing = cls.objects.filter(cluster_id=cluster_id, epoch=epoch).exclude(failures=0, failing_since=None)
        failing.update(failures=0, failing_since=None, next_look_at=None)

    @classmethod
    def try_now(cls, cluster_id: int) -> int | None:
        """Leave it alone no longer. The epoch it is in; None: no worker has ever heard of it."""
        waiting = cls.objects.filter(cluster_id=cluster_id)
        waiting.update(failures=0, next_look_at=None)
        return waiting.values_list("epoch", flat=True).first()


FORGOTTEN_AFTER = timedelta(days=1)


class ObservingWorker(models.Model):
    """A process that takes leases of watching, by its own word. One that is silent for a lease no longer counts."""

    name = models.CharField(max_length=100, unique=True)  # as in `Observer.owner`
    threads = models.PositiveIntegerField()  # the clusters it can watch at once
    lease_until = models.DateTimeField()

    @classmethod
    def report(cls, name: str, *, threads: int, now: datetime) -> None:
        with transaction.atomic():
            said = {"threads": threads, "lease_until": now + LEASE}
            cls.objects.update_or_create(name=name, defaults=said)
            cls.objects.filter(lease_until__lt=now - FORGOTTEN_AFTER).delete()

    @classmethod
    def leave(cls, name: str) -> None:
        cls.objects.filter(name=name).delete()
