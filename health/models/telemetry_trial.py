from datetime import datetime
from enum import StrEnum
from typing import Self

from django.db import models
from django.db.models import Q

from fleet.models.observer import LostLease
from fleet.models.visible import Visible
from health.models.telemetry_source import ROUND_LEASE


class TrialState(StrEnum):
    """How far it is to try a source. What each says stands in `TelemetryTrial.state_at`."""

    WAITING = "waiting"  # no worker has begun
    ASKING = "asking"
    ANSWERED = "answered"
    TROUBLED = "troubled"  # it does not answer, or not with what was asked for: `trouble` says why
    LOST = "lost"  # no worker has begun, or ended what it began, within the time of a round


class TelemetryTrialQuerySet(Visible["TelemetryTrial"]):
    """Seen by who sees the whole cluster."""

    def open_at(self, now: datetime) -> Self:
        """Those that something may come of still."""
        since = now - ROUND_LEASE
        return self.filter(Q(begun_at=None, asked_at__gt=since) | Q(begun_at__gt=since), ended_at=None)

    def waiting(self, *, now: datetime) -> "models.QuerySet[TelemetryTrial, int]":
        """The keys of those that no worker has taken up."""
        return self.open_at(now).filter(begun_at=None).values_list("pk", flat=True)


class TelemetryTrial(models.Model):
    """A source that a worker asks once, before anybody saves it, and what came of that. No secret is in it."""

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
    nodes = models.JSONField(null=True)  # as `Exporting` writes it; null: nobody has counted
    notes = models.JSONField(default=list)  # what is odd about its answer, in sentences

    objects = TelemetryTrialQuerySet.as_manager()

    class Meta:
        ordering = ["-asked_at", "-pk"]

    def __str__(self) -> str:
        return f"{self.url} tried for {self.cluster.name}"

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
        """None: it is gone, it is too late for it, or somebody has begun it."""
        if not cls.objects.open_at(now).filter(pk=pk, begun_at=None).update(begun_at=now):
            return None
        return cls.objects.select_related("cluster").get(pk=pk)

    def end(self, *, now: datetime, trouble: str = "", **found: object) -> None:
        """:raises LostLease: when nobody waits for it any more"""
        own = TelemetryTrial.objects.open_at(now).filter(pk=self.pk, begun_at=self.begun_at)
        if not own.update(ended_at=now, trouble=trouble[:600], **found):
            raise LostLease(f"nobody waits any more for what the trial {self.pk} says")
