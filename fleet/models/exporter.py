"""DCGM exporters, queried one by one through the API server: the rounds of a cluster, and each exporter's last
answer."""

from datetime import datetime, timedelta
from typing import Any

from django.db import models

from fleet.models.observer import LostLease

ASKED_EVERY = timedelta(seconds=30)
ASKED_AT_MOST = 200  # exporters per cluster; more would mean over ten requests per second
ROUND_LEASE = timedelta(seconds=60)
CURRENT_FOR = timedelta(minutes=2)  # an older reading is a last-seen position


class ExportersState(models.TextChoices):
    WAITING = "waiting"  # no round yet
    NONE = "none"  # the cluster has no exporter pod
    ASKED = "asked"  # all were queried; see `answered`
    FORBIDDEN = "forbidden"  # 403: the rule for pods/proxy is missing
    TOO_MANY = "too-many"  # none is queried
    UNSEEN = "unseen"  # no answer from the API server, or another cluster answered


class ExporterRound(models.Model):
    """The query rounds of a cluster's exporters: lease, next round, and result."""

    cluster = models.OneToOneField("fleet.Cluster", models.CASCADE, related_name="exporter_round")
    epoch = models.PositiveBigIntegerField(default=0)
    lease_until = models.DateTimeField()
    next_look_at = models.DateTimeField()
    state = models.CharField(max_length=16, choices=ExportersState.choices, default=ExportersState.WAITING)
    state_since = models.DateTimeField()
    message = models.CharField(max_length=500, blank=True)
    exporters = models.PositiveIntegerField(default=0)  # exporter pods, running or not
    answered = models.PositiveIntegerField(default=0)  # in the last round
    read_at = models.DateTimeField(null=True)  # last answer of any exporter; null: never

    @property
    def unanswered(self) -> int:
        """Returns how many did not answer in the last round."""
        return max(0, self.exporters - self.answered)

    @classmethod
    def take(cls, cluster_id: int, *, now: datetime) -> int | None:
        """Takes the next round. Returns its epoch; None: not due, or taken."""
        fresh = {"lease_until": now, "next_look_at": now, "state_since": now}
        row, _ = cls.objects.get_or_create(cluster_id=cluster_id, defaults=fresh)
        free = cls.objects.filter(pk=row.pk, epoch=row.epoch, lease_until__lte=now, next_look_at__lte=now)
        moved = {"epoch": row.epoch + 1, "lease_until": now + ROUND_LEASE, "next_look_at": now + ASKED_EVERY}
        return row.epoch + 1 if free.update(**moved) else None

    @classmethod
    def keep(cls, cluster_id: int, *, epoch: int, **columns: Any) -> None:
        """Writes the results of a round, inside the transaction of its other writes.

        :raises LostLease: when another worker took the round
        """
        if not cls.objects.filter(cluster_id=cluster_id, epoch=epoch).update(epoch=epoch, **columns):
            raise LostLease(f"epoch {epoch} at the exporters of cluster {cluster_id} is over")


class ExporterReading(models.Model):
    """The last answer of a node's exporter about GPU users. A failed query keeps the answer."""

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="exporter_readings")
    node_name = models.CharField(max_length=253)
    # Of each GPU or slice: uuid (of the board), index, gi_id, profile, and its pods: uid, namespace, name, container. A
    # pod's uid is blank if no such pod was seen on the node. `jobs`: of a batch system, if any.
    devices = models.JSONField(default=list)
    read_at = models.DateTimeField(null=True)  # null: never answered
    tried_at = models.DateTimeField()
    refused = models.CharField(max_length=500, blank=True)  # error of the last query; blank: none
    refused_since = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "node_name"], name="one_exporter_reading_per_node")]

    def is_current(self, *, now: datetime) -> bool:
        return self.read_at is not None and now - self.read_at <= CURRENT_FOR
