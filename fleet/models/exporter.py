"""DCGM exporters, asked one by one through the API server: how that goes in a cluster, and what each last said."""

from datetime import datetime, timedelta
from typing import Any

from django.db import models

from fleet.models.observer import LostLease

ASKED_EVERY = timedelta(seconds=30)
ASKED_AT_MOST = 200  # exporters of a cluster: with more, the API server would be asked for ten a second
ROUND_LEASE = timedelta(seconds=60)
CURRENT_FOR = timedelta(minutes=2)  # what was read longer ago is where a pod was last seen, not where it is


class ExportersState(models.TextChoices):
    WAITING = "waiting"  # nobody has looked yet
    NONE = "none"  # no exporter's pod is seen in the cluster
    ASKED = "asked"  # each was asked in its turn; `answered` says how many answered
    FORBIDDEN = "forbidden"  # 403: the rule for pods/proxy is missing
    TOO_MANY = "too-many"  # none is asked
    UNSEEN = "unseen"  # the API server did not answer, or another cluster's did


class ExporterRound(models.Model):
    """Who asks a cluster's exporters, when the next round is due, and how the last one went."""

    cluster = models.OneToOneField("fleet.Cluster", models.CASCADE, related_name="exporter_round")
    epoch = models.PositiveBigIntegerField(default=0)
    lease_until = models.DateTimeField()
    next_look_at = models.DateTimeField()
    state = models.CharField(max_length=16, choices=ExportersState.choices, default=ExportersState.WAITING)
    state_since = models.DateTimeField()
    message = models.CharField(max_length=500, blank=True)
    exporters = models.PositiveIntegerField(default=0)  # pods of theirs, running or not
    answered = models.PositiveIntegerField(default=0)  # in the last round
    read_at = models.DateTimeField(null=True)  # when one last answered; null: none ever did

    @property
    def unanswered(self) -> int:
        """How many did not answer in the last round."""
        return max(0, self.exporters - self.answered)

    @classmethod
    def take(cls, cluster_id: int, *, now: datetime) -> int | None:
        """The epoch that is ours from now on. None: it is not due, or somebody is at it."""
        fresh = {"lease_until": now, "next_look_at": now, "state_since": now}
        row, _ = cls.objects.get_or_create(cluster_id=cluster_id, defaults=fresh)
        free = cls.objects.filter(pk=row.pk, epoch=row.epoch, lease_until__lte=now, next_look_at__lte=now)
        moved = {"epoch": row.epoch + 1, "lease_until": now + ROUND_LEASE, "next_look_at": now + ASKED_EVERY}
        return row.epoch + 1 if free.update(**moved) else None

    @classmethod
    def keep(cls, cluster_id: int, *, epoch: int, **columns: Any) -> None:
        """Write what a round found. Call it inside the transaction of whatever else is written.

        :raises LostLease: when the round is somebody else's by now
        """
        if not cls.objects.filter(cluster_id=cluster_id, epoch=epoch).update(epoch=epoch, **columns):
            raise LostLease(f"epoch {epoch} at the exporters of cluster {cluster_id} is over")


class ExporterReading(models.Model):
    """What the exporter of one node last said of who has its GPUs. A try that fails leaves what was said."""

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="exporter_readings")
    node_name = models.CharField(max_length=253)
    # Of each GPU or slice: uuid (of the board), index, gi_id, profile, and its pods: uid, namespace, name, container.
    # A pod's uid is blank where no pod of that name was seen on the node. `jobs`: of a batch system, where it has any.
    devices = models.JSONField(default=list)
    read_at = models.DateTimeField(null=True)  # null: it never answered
    tried_at = models.DateTimeField()
    refused = models.CharField(max_length=500, blank=True)  # why the last try failed; blank: it did not
    refused_since = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "node_name"], name="one_exporter_reading_per_node")]

    def is_current(self, *, now: datetime) -> bool:
        return self.read_at is not None and now - self.read_at <= CURRENT_FOR
