from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import models
from django.db.models import Q

from fleet.event_kinds import EVENT_KINDS, EventKind
from fleet.messages import listeners

AT_ONCE = 500  # rows per statement
LONGEST_KEY = 64


class DomainEventQuerySet(models.QuerySet["DomainEvent"]):
    def waiting(self) -> DomainEventQuerySet:
        """Returns events that nobody has been notified of yet, oldest first."""
        return self.filter(routed_at=None).order_by("pk")

    def unsettled(self) -> DomainEventQuerySet:
        """Returns events about which it is still open whether a cause explains them."""
        return self.filter(routed_at=None, is_settled=False)


class DomainEvent(models.Model):
    """A change that somebody may want to be notified of: the outbox, written in the transaction of the change.

    Events of one key are routed in the order of their primary keys. The change locks its row before it writes the
    event, so a later change of the same subject has a greater key.
    """

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="domain_events")
    kind = models.CharField(max_length=32)  # of `fleet.event_kinds`
    key = models.CharField(max_length=LONGEST_KEY)  # the subject: "finding/12", "plan/7", "plan/7/stage/3"
    at = models.DateTimeField()
    facts = models.JSONField(default=dict)  # those of its kind
    is_settled = models.BooleanField(default=True)  # false: a cause may explain it, and nobody has looked yet
    routed_at = models.DateTimeField(null=True)  # when its deliveries were written; null: it waits

    objects = DomainEventQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["id"], name="events_that_wait", condition=Q(routed_at=None)),
            models.Index(fields=["at"]),
        ]
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.kind} of {self.key}"

    @property
    def its_kind(self) -> EventKind:
        return EVENT_KINDS[self.kind]

    @classmethod
    def of(cls, kind: str, key: str, *, cluster_id: int, at: datetime, facts: Mapping[str, Any]) -> DomainEvent:
        """Returns an unsaved event."""
        is_settled = not EVENT_KINDS[kind].may_have_cause
        return cls(cluster_id=cluster_id, kind=kind, key=key, at=at, facts=dict(facts), is_settled=is_settled)

    @staticmethod
    def write(events: Sequence[DomainEvent]) -> None:
        """Saves events, and notifies their readers after the commit. Call it in the transaction of the changes."""
        if not events:
            return
        DomainEvent.objects.bulk_create(events, batch_size=AT_ONCE)
        _notify({event.cluster_id for event in events if event.is_settled})

    @classmethod
    def settle(cls, events: Collection[int], *, cluster_id: int) -> None:
        """Marks events as compared with their causes, and notifies their readers after the commit."""
        if events and cls.objects.unsettled().filter(pk__in=events).update(is_settled=True):
            _notify({cluster_id})


def _notify(cluster_ids: Collection[int]) -> None:
    for cluster_id in cluster_ids:
        listeners.notify(listeners.HAPPENED, cluster_id)
