"""Telemetry sources: one row per cluster, with the state of its queries. It contains no secret."""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Self

from django.db import models
from django.db.models import F, Q, Value
from django.db.models.functions import Least

from fleet.models.observer import LostLease
from fleet.models.visible import Visible
from health.telemetry.base import STALE_AFTER_S

ROUND_LEASE = timedelta(seconds=90)  # longer than a round may take
PERIOD = timedelta(seconds=15)  # as the operator's ServiceMonitor scrapes
PERIOD_AT_MOST = timedelta(seconds=45)  # twice in the time in which a sample grows stale: one may be missed
SHARE = 50  # a round may take this part of its period, and the look after it as much: together 0.04 of a core
AGAIN_AFTER = timedelta(seconds=30)  # a source that did not answer
STALE_AFTER = timedelta(seconds=STALE_AFTER_S)  # an older answer is not current
LATE, LATE_AFTER = "late", 3  # periods, of one that answered last time and was not asked since; or `STALE_AFTER`


def period_after(took: timedelta) -> timedelta:
    """Returns the time between the starts of two rounds.

    A long round lengthens it, to spare Prometheus and the worker.
    """
    return min(max(PERIOD, SHARE * took), PERIOD_AT_MOST)


class SourceState(models.TextChoices):
    WAITING = "waiting"  # not queried yet
    ANSWERING = "answering"
    SILENT = "silent"  # no answer, or no usable answer: `message` gives the reason
    OFF = "off"  # a person switched it off


class TelemetrySourceQuerySet(Visible["TelemetrySource"]):
    """Sources, visible to users who see the whole cluster."""

    def due(self, *, now: datetime) -> "models.QuerySet[TelemetrySource, int]":
        """Returns the keys of the clusters whose source is due."""
        free = self.filter(is_on=True, next_look_at__lte=now, lease_until__lte=now)
        return free.order_by("next_look_at").values_list("cluster_id", flat=True)


class TelemetrySource(models.Model):
    """A Prometheus with the series of a cluster's GPU exporters. Label matchers select them in a shared one."""

    cluster = models.OneToOneField("fleet.Cluster", models.CASCADE, related_name="telemetry_source")
    url = models.CharField(max_length=300)
    matchers = models.CharField(max_length=500, blank=True)  # blank: all that it has is this cluster's
    user = models.CharField(max_length=150, blank=True)
    # Location of a secret, never the secret: "env:NAME" or "file:PATH". With a user name it is a password, else a
    # bearer token.
    secret_from = models.CharField(max_length=300, blank=True)
    ca_file = models.CharField(max_length=300, blank=True)
    is_on = models.BooleanField(default=True)
    added_by = models.CharField(max_length=150)
    added_at = models.DateTimeField()
    changed_at = models.DateTimeField()  # by a person

    epoch = models.PositiveBigIntegerField(default=0)
    lease_until = models.DateTimeField()
    next_look_at = models.DateTimeField(db_index=True)
    state = models.CharField(max_length=16, choices=SourceState.choices, default=SourceState.WAITING)
    state_since = models.DateTimeField()
    message = models.CharField(max_length=600, blank=True)
    notes = models.JSONField(default=list)  # anomalies of its answers, as sentences
    answered_at = models.DateTimeField(null=True)  # null: it never did
    took_ms = models.PositiveIntegerField(null=True)  # the last round that was answered
    devices = models.PositiveIntegerField(default=0)  # boards and slices of its last answer
    exported = models.JSONField(default=list)  # keys of the metrics that it has any series of
    clock_offset_s = models.FloatField(default=0.0)  # as `TelemetryReading.clock_offset_s`, of its last answer

    # Exporters with more series of a name than GPUs can have, the worst first: [{"name", "instance", "series"}]
    exploding = models.JSONField(default=list)

    objects = TelemetrySourceQuerySet.as_manager()

    class Meta:
        ordering = ["cluster__name"]

    def __str__(self) -> str:
        return f"{self.url} for {self.cluster.name}"

    @property
    def period(self) -> timedelta:
        return period_after(timedelta(milliseconds=self.took_ms or 0))

    def state_at(self, now: datetime) -> str:
        """Returns the state for pages and REST.

        A source that was not queried for a while does not count as answering.
        """
        late_after = min(LATE_AFTER * self.period, STALE_AFTER)
        was_asked = self.answered_at is not None and now - self.answered_at <= late_after
        return LATE if self.state == SourceState.ANSWERING and not was_asked else self.state

    @classmethod
    def take(cls, cluster_id: int, *, now: datetime) -> "tuple[TelemetrySource, int] | None":
        """Returns the row and our epoch; None if there is none, it is not due, or another worker has it."""
        row = cls.objects.select_related("cluster").filter(cluster=cluster_id, is_on=True).first()
        if row is None:
            return None
        free = cls.objects.filter(pk=row.pk, epoch=row.epoch, is_on=True, lease_until__lte=now, next_look_at__lte=now)
        if not free.update(epoch=row.epoch + 1, lease_until=now + ROUND_LEASE, next_look_at=now + row.period):
            return None
        return row, row.epoch + 1

    @classmethod
    def ask_soon(cls, pk: int, *, now: datetime) -> bool:
        """Makes the source due now. Returns false if it is switched off or gone."""
        return bool(cls.objects.filter(pk=pk, is_on=True).update(next_look_at=Least(F("next_look_at"), Value(now))))

    @classmethod
    def keep(cls, pk: int, *, epoch: int, **columns: Any) -> None:
        """Writes the result of a round.

        :raises LostLease: when another worker has taken the round over, or the source was changed meanwhile
        """
        if not cls.objects.filter(pk=pk, epoch=epoch).update(epoch=epoch, **columns):
            raise LostLease(f"epoch {epoch} at the telemetry source {pk} is over")


class TrialState(StrEnum):
    """The progress of a trial. `TelemetryTrial.state_at` describes each state."""

    WAITING = "waiting"  # no worker has begun
    ASKING = "asking"
    ANSWERED = "answered"
    TROUBLED = "troubled"  # no answer, or no usable answer: `trouble` gives the reason
    LOST = "lost"  # no worker began it, or finished it, within the time of a round


class TelemetryTrialQuerySet(Visible["TelemetryTrial"]):
    """Trials, visible to users who see the whole cluster."""

    def open_at(self, now: datetime) -> Self:
        since = now - ROUND_LEASE
        return self.filter(Q(begun_at=None, asked_at__gt=since) | Q(begun_at__gt=since), ended_at=None)

    def waiting(self, *, now: datetime) -> "models.QuerySet[TelemetryTrial, int]":
        """Returns the keys of trials that no worker has taken."""
        return self.open_at(now).filter(begun_at=None).values_list("pk", flat=True)


class TelemetryTrial(models.Model):
    """A trial of an unsaved source: a worker queries it once. It contains no secret."""

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="telemetry_trials")
    asked_by = models.CharField(max_length=150)
    asked_at = models.DateTimeField()
    url = models.CharField(max_length=300)
    matchers = models.CharField(max_length=500, blank=True)
    user = models.CharField(max_length=150, blank=True)
    secret_from = models.CharField(max_length=300, blank=True)  # as a source's: where it is found
    ca_file = models.CharField(max_length=300, blank=True)

    begun_at = models.DateTimeField(null=True)  # null: no worker has taken it up
    ended_at = models.DateTimeField(null=True)  # null: nothing has come of it
    trouble = models.CharField(max_length=600, blank=True)  # blank: it answers, once it has ended
    devices = models.PositiveIntegerField(default=0)  # boards and slices of its answer
    exported = models.JSONField(default=list)  # keys of the metrics that it has any series of
    nodes = models.JSONField(null=True)  # as `Exporting` writes it; null: not counted
    notes = models.JSONField(default=list)  # anomalies of its answer, as sentences

    objects = TelemetryTrialQuerySet.as_manager()

    class Meta:
        ordering = ["-asked_at", "-pk"]

    def __str__(self) -> str:
        return f"trial of {self.url} for {self.cluster.name}"

    @property
    def answers(self) -> bool:
        return self.ended_at is not None and not self.trouble

    def state_at(self, now: datetime) -> TrialState:
        if self.ended_at is not None:
            return TrialState.ANSWERED if self.answers else TrialState.TROUBLED
        if now - (self.begun_at or self.asked_at) >= ROUND_LEASE:
            return TrialState.LOST
        return TrialState.WAITING if self.begun_at is None else TrialState.ASKING

    @classmethod
    def take(cls, pk: int, *, now: datetime) -> "TelemetryTrial | None":
        """Takes a trial; None if it is gone, expired, or taken by another worker."""
        if not cls.objects.open_at(now).filter(pk=pk, begun_at=None).update(begun_at=now):
            return None
        return cls.objects.select_related("cluster").get(pk=pk)

    def end(self, *, now: datetime, trouble: str = "", **found: object) -> None:
        """Writes the result.

        :raises LostLease: when the trial has expired
        """
        own = TelemetryTrial.objects.open_at(now).filter(pk=self.pk, begun_at=self.begun_at)
        if not own.update(ended_at=now, trouble=trouble[:600], **found):
            raise LostLease(f"nobody waits for the result of trial {self.pk} any more")
