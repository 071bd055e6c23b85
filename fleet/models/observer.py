from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, models, transaction
from django.db.models import Q
from django.db.models.functions import Coalesce

from kube.credential_life import CredentialLife

LEASE = timedelta(seconds=30)
FIRST_WAIT = timedelta(seconds=1)
LONGEST_WAIT = timedelta(minutes=5)  # a dead address blocks a thread for 10 s: a hundred of them then cost four threads
ONE_IN = timedelta(minutes=1)  # interval of retries while others wait for a thread
GRACE = timedelta(seconds=15)  # between two leases; longer means that no thread is free


class LostLease(Exception):
    """Another worker took the lease, so this worker must not write."""


def wait_after(failures: int, *, share: float) -> timedelta:
    """Returns the wait after a number of failures. `share` is the jitter, from 0 to 1."""
    whole = min(FIRST_WAIT * 2 ** min(max(failures, 1) - 1, 16), LONGEST_WAIT)
    return whole * (0.5 + share / 2)


class ObserverQuerySet(models.QuerySet["Observer"]):
    def due(self, *, now: datetime) -> ObserverQuerySet:
        """Filters to observers whose lease may be taken."""
        return self.filter(Q(next_look_at=None) | Q(next_look_at__lte=now), lease_until__lt=now)


class Observer(models.Model):
    """The watch lease of a cluster. Every write under it asserts the epoch; an expired lease is free."""

    cluster = models.OneToOneField("fleet.Cluster", models.CASCADE, related_name="observer")
    epoch = models.PositiveBigIntegerField(default=0)  # how often the lease was taken
    owner = models.CharField(max_length=100, blank=True)
    lease_until = models.DateTimeField()
    batch = models.PositiveBigIntegerField(default=0)  # number of flushes: the sequence number for browsers
    batch_at = models.DateTimeField(null=True)
    lag_ms = models.PositiveIntegerField(default=0)  # wait of the oldest change in the last flush
    behind_since = models.DateTimeField(null=True)  # start of an excessive lag; null: none
    clock_skew_s = models.FloatField(null=True)  # how far the API server's clock is ahead of ours; null: not measured
    credentials = models.JSONField(null=True)  # written CredentialLives of its kubeconfig; null: not read yet
    failures = models.PositiveIntegerField(default=0)  # consecutive leases without an answer
    # first of these leases without an answer; null: the last lease had an answer
    failing_since = models.DateTimeField(null=True)
    next_look_at = models.DateTimeField(null=True)  # not before; null: when the lease ends

    objects = ObserverQuerySet.as_manager()

    @property
    def credential_lives(self) -> list[CredentialLife]:
        """Returns the lives of the certificates and tokens by which the cluster was last reached."""
        return [CredentialLife.read(row) for row in self.credentials or ()]

    @classmethod
    def take(cls, cluster_id: int, *, epoch: int, owner: str, now: datetime) -> int | None:
        """Takes the lease after `epoch`. None: held, not due, or an outdated message."""
        free = cls.objects.due(now=now).filter(cluster_id=cluster_id, epoch=epoch)
        won = free.update(epoch=epoch + 1, owner=owner, lease_until=now + LEASE)
        return epoch + 1 if won else None

    @classmethod
    def keep(cls, cluster_id: int, *, epoch: int, now: datetime, flushed: bool, **lag: Any) -> None:
        """Extends the lease and counts the flush, inside the flush's transaction.

        `lag` has `lag_ms` and `behind_since` of this flush.

        :raises LostLease: when another worker took the lease
        """
        moved: dict[str, Any] = {"lease_until": now + LEASE, **lag}
        if flushed:
            moved |= {"batch": models.F("batch") + 1, "batch_at": now}
        if not cls.objects.filter(cluster_id=cluster_id, epoch=epoch).update(**moved):
            raise LostLease(f"epoch {epoch} of cluster {cluster_id} is over")

    @classmethod
    def lock(cls, cluster_id: int) -> None:
        """Blocks other writes of the cluster's nodes until the transaction ends; every flush locks this row."""
        if connection.features.has_select_for_update:  # a transaction of SQLite has the whole database
            list(cls.objects.select_for_update(no_key=True).filter(cluster=cluster_id).values_list("pk"))

    @classmethod
    def batch_of(cls, cluster_id: int) -> int:
        """Returns the number of the newest flush. 0: never observed."""
        return cls.objects.filter(cluster_id=cluster_id).values_list("batch", flat=True).first() or 0

    @classmethod
    def batches_of(cls, clusters: Collection[int]) -> dict[int, int]:
        """Returns `batch_of` by cluster."""
        batches = cls.objects.filter(cluster__in=clusters).values_list("cluster_id", "batch")
        return dict.fromkeys(clusters, 0) | dict(batches)

    @classmethod
    def give_up(cls, cluster_id: int, *, epoch: int, now: datetime) -> None:
        """Releases the lease early, so that no worker waits for its end."""
        with transaction.atomic():
            cls.objects.filter(cluster_id=cluster_id, epoch=epoch).update(lease_until=now - timedelta(seconds=1))

    @classmethod
    def yields_thread(cls, cluster_id: int, *, now: datetime) -> bool:
        """Tells whether a cluster without an answer leaves its thread to one with answers.

        One such cluster is still tried per minute.
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
        """Releases the thread, with a longer wait after each failure.

        :raises LostLease: when another worker took the lease
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
        """Resets the failures after an answer."""
        failing = cls.objects.filter(cluster_id=cluster_id, epoch=epoch).exclude(failures=0, failing_since=None)
        failing.update(failures=0, failing_since=None, next_look_at=None)

    @classmethod
    def try_now(cls, cluster_id: int) -> int | None:
        """Ends the wait. Returns the current epoch; None: never observed."""
        waiting = cls.objects.filter(cluster_id=cluster_id)
        waiting.update(failures=0, next_look_at=None)
        return waiting.values_list("epoch", flat=True).first()


FORGOTTEN_AFTER = timedelta(days=1)


class ObservingWorker(models.Model):
    """A process that takes watch leases, as reported by itself. A silent one expires."""

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
