from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import models
from django.db.models import Q

from fleet.event_kinds import EVENT_KINDS, EventKind, EventPhase, glyph_of, line_of
from fleet.messages import listeners
from fleet.models.node import Node, members_of
from fleet.models.node_event import GoneNode
from fleet.models.visible import Visible

AT_ONCE = 500  # rows per statement
LONGEST_KEY = 64
OWN_MESSAGES = "finding."  # pages receive these kinds with the counts of their nodes


class DomainEventQuerySet(Visible["DomainEvent"]):
    """Events are visible with their cluster; those about a node also with its pools, as findings and cases are."""

    def in_pools(self, pool_ids: Collection[int] | models.QuerySet) -> Q:
        there = Node.objects.filter(pk__in=members_of(pool_ids)).order_by().values("uid")
        gone = GoneNode.pools.through.objects.filter(pool_id__in=pool_ids).values("gonenode__uid")
        # Only with the condition of its index may a database use it.
        return ~Q(node_uid="") & (Q(node_uid__in=there) | Q(node_uid__in=gone))

    def waiting(self) -> DomainEventQuerySet:
        """Returns events that nobody has been notified of yet, oldest first.

        Kinds of a later version wait for its workers.
        """
        return self.filter(routed_at=None, kind__in=EVENT_KINDS).order_by("pk")

    def unsettled(self) -> DomainEventQuerySet:
        """Returns events about which it is still open whether a cause explains them."""
        return self.filter(routed_at=None, is_settled=False)


class DomainEvent(models.Model):
    """A change of a subject, written in its transaction: the outbox of notifications, and a line on pages.

    Events of one key are routed in the order of their primary keys. The change locks its row before it writes the
    event, so a later change of the same subject has a greater key.
    """

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="domain_events")
    kind = models.CharField(max_length=32)  # of `fleet.event_kinds`
    key = models.CharField(max_length=LONGEST_KEY)  # the subject: "finding/12", "plan/7", "plan/7/stage/3"
    at = models.DateTimeField()
    severity = models.CharField(max_length=16, default="", db_default="", blank=True)  # as in `facts`, for filters
    # Of the node that a finding or case is about, which the event outlives. Blank: about none.
    node_uid = models.CharField(max_length=64, default="", db_default="", blank=True)
    node_name = models.CharField(max_length=253, default="", db_default="", blank=True)
    pool_id = models.BigIntegerField(null=True)  # of a stage or a call of the traffic hook; not a key to the row
    facts = models.JSONField(default=dict)  # those of its kind
    is_settled = models.BooleanField(default=True)  # false: a cause may explain it, and nobody has looked yet
    routed_at = models.DateTimeField(null=True)  # when its deliveries were written, if any; null: it waits

    objects = DomainEventQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["id"], name="events_that_wait", condition=Q(routed_at=None)),
            models.Index(fields=["at"]),
            models.Index(fields=["cluster", "-id"], name="events_of_cluster"),
            models.Index(fields=["kind", "-id"], name="events_of_kind"),
            models.Index(fields=["severity", "-id"], name="events_of_severity"),
            models.Index(fields=["key", "-id"], name="events_of_key"),
            models.Index(fields=["node_uid", "-at", "-id"], name="events_of_node", condition=~Q(node_uid="")),
        ]
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.kind} of {self.key}"

    @property
    def its_kind(self) -> EventKind:
        return EVENT_KINDS.get(self.kind) or EventKind(self.kind, self.kind, EventPhase.RECORD, (), "{title}: {reason}")

    @property
    def family(self) -> str:
        """Returns the kind of its subject, of `FAMILIES`."""
        return self.kind.partition(".")[0]

    @property
    def subject(self) -> tuple[str, int]:
        """Returns the kind and the key of the row that it is about, as in "plan" and 7."""
        kind, key = self.key.split("/")[:2]
        return kind, int(key)

    @property
    def sentence(self) -> str:
        unnamed = {"title": " ".join(self.key.split("/")[:2]).capitalize()}  # an event of another version
        return line_of(self.its_kind, unnamed | self.facts)

    @property
    def glyph(self) -> str:
        return glyph_of(self.its_kind, self.facts)

    @property
    def actor(self) -> str:
        """Returns who made the change. Blank: nobody, as when a finding opens."""
        return str(self.facts.get("actor", ""))

    @classmethod
    def of(
        cls, kind: str, key: str, *, cluster_id: int, at: datetime, facts: Mapping[str, Any], **about: Any
    ) -> DomainEvent:
        """Returns an unsaved event. `about`: the columns of its node or pool."""
        its_kind = EVENT_KINDS[kind]
        return cls(
            cluster_id=cluster_id, kind=kind, key=key, at=at, facts=dict(facts), severity=facts.get("severity", ""),
            is_settled=not its_kind.may_have_cause, routed_at=at if its_kind.phase is EventPhase.RECORD else None,
            **about,
        )  # fmt: skip

    @staticmethod
    def write(events: Sequence[DomainEvent]) -> None:
        """Saves events, and notifies their readers after the commit. Call it in the transaction of the changes."""
        if not events:
            return
        DomainEvent.objects.bulk_create(events, batch_size=AT_ONCE)
        _notify({event.cluster_id for event in events if event.is_settled and event.routed_at is None})
        nodes: dict[int, set[str]] = {}
        for event in events:
            if not event.kind.startswith(OWN_MESSAGES):
                nodes.setdefault(event.cluster_id, set()).update(filter(None, [event.node_uid]))
        for cluster_id, uids in nodes.items():
            listeners.notify_of_events(cluster_id, uids)

    @classmethod
    def settle(cls, events: Collection[int], *, cluster_id: int) -> None:
        """Marks events as compared with their causes, and notifies their readers after the commit."""
        if events and cls.objects.unsettled().filter(pk__in=events).update(is_settled=True):
            _notify({cluster_id})


def _notify(cluster_ids: Collection[int]) -> None:
    for cluster_id in cluster_ids:
        listeners.notify(listeners.HAPPENED, cluster_id)
