"""Operations: one or more steps on a frozen list of nodes, with a result for each node."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from functools import reduce
from operator import or_
from typing import Any

from django.db import models, transaction
from django.db.models import Case, Q, When

from edges.transitions import write_move
from fleet.models import Cluster, DomainEvent
from fleet.models.domain_event import DomainEventQuerySet
from fleet.models.visible import Visible
from operations.kinds import ENDING_KINDS, KINDS, title_of
from operations.lifecycle import (
    IN_PROGRESS,
    NODE_MOVES,
    OPERATION_MOVES,
    UNFINISHED,
    NodeProgress,
    OperationState,
)
from operations.models.disruption import Disruption
from operations.models.leased import Leased
from wording.numbers import count

MARK = "operation-"  # prefix of `Operation.mark`
LONGEST_REASON = 1000
ENGINE = "engine"  # the actor of moves that no person asked for
STARTED, BLOCKED, PAUSED = "operation.started", "operation.blocked", "operation.paused"  # of `fleet.event_kinds`
OWNERS_ASKED, PODS_BLOCK = "operation.owners-asked", "operation.pods-block"  # likewise
HELD_SINCE = "held_since"  # in the progress of a pending node: since when another controller has held it back
EVENT_OF_STATE = {
    OperationState.RUNNING: "operation.continued",
    OperationState.PAUSED: BLOCKED,
    OperationState.FINISHED: "operation.finished",
    OperationState.CANCELLED: "operation.finished",
}


class OperationQuerySet(Visible["Operation"]):
    def in_progress(self) -> OperationQuerySet:
        return self.filter(state__in=sorted(IN_PROGRESS))

    def due(self, *, now: datetime) -> OperationQuerySet:
        return self.filter(state=OperationState.RUNNING, next_look_at__lte=now)


class Operation(Leased):
    """Steps on a frozen list of nodes. The row and its nodes are the intent; a worker carries them out."""

    lease_for = timedelta(seconds=20)
    round_task = "operations.tasks.run_operation"

    cluster = models.ForeignKey(Cluster, models.PROTECT, related_name="operations")
    steps = models.JSONField()  # keys of steps, in order
    options = models.JSONField(default=dict)
    state = models.CharField(max_length=16, default=OperationState.RUNNING.value)
    state_since = models.DateTimeField()
    reason = models.CharField(max_length=LONGEST_REASON)  # given by the requester
    asked_by = models.CharField(max_length=150)
    asked_at = models.DateTimeField()
    key = models.CharField(max_length=100, blank=True)  # idempotency key of the asker
    # Of all that was asked with the key. Blank in rows from before it was stored.
    body_digest = models.CharField(max_length=64, blank=True, default="", db_default="")
    preview = models.JSONField(default=dict)  # the impact that the asker saw
    state_reason = models.CharField(max_length=LONGEST_REASON, blank=True)  # of the last move
    waiting_for = models.CharField(max_length=LONGEST_REASON, blank=True)
    looked_at = models.DateTimeField(null=True)

    objects = OperationQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["asked_by", "key"], condition=~Q(key=""), name="one_operation_per_key"),
        ]
        indexes = [
            models.Index(fields=["next_look_at"], condition=Q(state="running"), name="operations_due"),
            models.Index(fields=["cluster", "-id"], name="operations_of_cluster"),
        ]
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.mark

    @property
    def mark(self) -> str:
        """Returns the owner's name in the cluster, the ledger and the audit chain."""
        return f"{MARK}{self.pk}"

    @property
    def kind(self) -> str:
        """Returns the key of KINDS."""
        return next((kind.key for kind in KINDS.values() if list(kind.steps) == list(self.steps)), "")

    @property
    def summary(self) -> str:
        """Returns "Drain of 3 nodes". One query."""
        of = KINDS[self.kind].of if self.kind else "of"
        return f"{title_of(self.kind)} {of} {count(self.nodes.count(), 'node')}"

    @property
    def is_in_progress(self) -> bool:
        return self.state in IN_PROGRESS

    @property
    def waits(self) -> str:
        """Returns why it does not continue. Blank: it does, or nothing is known."""
        if self.state == OperationState.PROPOSED:
            return "The operation waits for the approval of another person."
        return "The operation is paused." if self.state == OperationState.PAUSED else self.waiting_for

    def its_row(self) -> OperationQuerySet:
        return Operation.objects.filter(pk=self.pk, state=OperationState.RUNNING)

    def end_lease(self, *, now: datetime, next_look_at: datetime, waiting_for: str) -> None:
        """Ends the lease. An earlier time for the next round, set by a command, stays."""
        mine = Operation.objects.filter(pk=self.pk, epoch=self.epoch)
        mine.update(lease_until=now, waiting_for=waiting_for[:LONGEST_REASON], looked_at=now)
        mine.filter(next_look_at__gt=now).update(next_look_at=next_look_at)

    def move(self, to: OperationState, *, now: datetime, reason: str = "", actor: str = ENGINE) -> None:
        """Moves the operation, with its domain event. Nobody is notified of the pause that a person asked for.

        :raises IllegalMove: when the state table does not allow it
        :raises LostRace: when somebody else moved it first
        """
        reason = reason[:LONGEST_REASON]
        columns = {"state_since": now, "state_reason": reason, "next_look_at": now}
        with transaction.atomic():
            write_move(self, OPERATION_MOVES, OperationState(self.state), to, **columns)
            self.state, self.state_since, self.state_reason = to, now, reason
            is_own_pause = to == OperationState.PAUSED and actor != ENGINE
            self.write_event(PAUSED if is_own_pause else EVENT_OF_STATE[to], now=now, actor=actor, reason=reason)

    @property
    def owner_events(self) -> DomainEventQuerySet:
        """Returns the events that ask owners of jobs, oldest first."""
        return DomainEvent.objects.filter(key=self.event_key, kind__in=(OWNERS_ASKED, PODS_BLOCK)).order_by("pk")

    @property
    def event_key(self) -> str:
        return f"operation/{self.pk}"

    def write_event(self, kind: str, *, now: datetime, actor: str, reason: str, **more: Any) -> None:
        """Writes a domain event. Call it in the transaction of the change. `more`: further facts of its kind."""
        facts = {
            "operation": self.pk, "title": self.summary, "severity": "warning", "actor": actor, "reason": reason,
            "state": self.state, **more,
        }  # fmt: skip
        DomainEvent.write([DomainEvent.of(kind, self.event_key, cluster_id=self.cluster_id, at=now, facts=facts)])

    def give_back(self, node_uids: Collection[str], *, now: datetime) -> None:
        """Ends the ledger entries of nodes that it leaves without a quarantine."""
        kept = Quarantine.objects.of_nodes(node_uids).values_list("node_uid", flat=True)
        places = Disruption.objects.filter(taken_by=self.mark, node_uid__in=node_uids)
        places.exclude(node_uid__in=list(kept)).give_back(now=now)


def is_of_kinds(*kinds: str) -> Q:
    """Returns the condition that a node's operation is of one of these kinds."""
    return reduce(or_, (Q(operation__steps=list(KINDS[kind].steps)) for kind in kinds), Q(pk__in=[]))


class OperationNodeQuerySet(Visible["OperationNode"]):
    by_cluster = "operation__cluster"

    def of_kinds(self, *kinds: str) -> OperationNodeQuerySet:
        return self.filter(is_of_kinds(*kinds))

    def unfinished(self) -> OperationNodeQuerySet:
        return self.filter(state__in=sorted(UNFINISHED))

    def worst_first(self) -> OperationNodeQuerySet:
        """Orders failed nodes first, since a page shows only the first ones."""
        places = {state: place for place, state in enumerate(("failed", "running", "pending", "done", "cancelled"))}
        known = [When(state=state, then=place) for state, place in places.items()]
        return self.order_by(Case(*known, default=len(known)), "position")


class OperationNode(models.Model):
    """One node of an operation, with its step in progress and its result."""

    operation = models.ForeignKey(Operation, models.CASCADE, related_name="nodes")
    position = models.PositiveIntegerField()
    node_uid = models.CharField(max_length=64)
    node_name = models.CharField(max_length=253)
    state = models.CharField(max_length=16, default=NodeProgress.PENDING.value)
    state_since = models.DateTimeField()
    step = models.PositiveSmallIntegerField(default=0)  # index of the step in progress
    step_since = models.DateTimeField(null=True)
    reason = models.CharField(max_length=LONGEST_REASON, blank=True)  # reason for waiting, or the result
    progress = models.JSONField(default=dict)  # of the step: {"pods": [{"name": "team/a", "state": "asked", …}]}

    objects = OperationNodeQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["operation", "node_uid"], name="one_operation_row_per_node"),
            models.UniqueConstraint(
                fields=["node_uid"], condition=Q(state="running"), name="one_running_operation_per_node"
            ),
        ]
        indexes = [models.Index(fields=["node_uid", "-id"], name="operations_of_node")]
        ordering = ["operation_id", "position"]

    def move(self, to: NodeProgress, *, now: datetime, reason: str = "", **columns: Any) -> None:
        """Moves the node.

        :raises IllegalMove: when the state table does not allow it
        :raises LostRace: when somebody else moved it first
        """
        columns |= {"state_since": now, "reason": reason[:LONGEST_REASON]}
        write_move(self, NODE_MOVES, NodeProgress(self.state), to, **columns)
        self.state = to
        for name, value in columns.items():
            setattr(self, name, value)

    @property
    def blocked_since(self) -> datetime | None:
        """Returns since when a pod keeps the drain from its end. None: none does."""
        return _instant(self.progress.get("blocked_since"))

    @property
    def fails_at(self) -> datetime | None:
        """Returns the deadline of the drain. None: no eviction was asked for yet."""
        return _instant(self.progress.get("fails_at"))

    @property
    def owner_requests(self) -> list[dict[str, Any]]:
        """Returns the owners that a drain asked, with the answer so far."""
        return [
            its | {"job": job, "asked_at": _instant(its["asked_at"]), "until": _instant(its["until"])}
            for job, its in sorted(self.progress.get("owner_requests", {}).items())
        ]

    @property
    def pods_gone(self) -> int:
        return self.progress.get("of", 0) - self.progress.get("left", 0)

    @property
    def gpus_released(self) -> int:
        """Returns the GPUs that evicted pods had. A GPU with a fault is among them: it is not free for others."""
        return self.progress.get("gpus_of", 0) - self.progress.get("gpus_left", 0)

    def note(self, reason: str, *, progress: dict[str, Any] | None = None) -> None:
        """Stores what the step waits for. Writes only a change."""
        changed = {"reason": reason[:LONGEST_REASON]} | ({} if progress is None else {"progress": progress})
        if any(getattr(self, name) != value for name, value in changed.items()):
            OperationNode.objects.filter(pk=self.pk, state=NodeProgress.RUNNING).update(**changed)
            for name, value in changed.items():
                setattr(self, name, value)


def _instant(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


class QuarantineQuerySet(Visible["Quarantine"]):
    def in_force(self) -> QuarantineQuerySet:
        return self.filter(ended_at__isnull=True)

    def of_nodes(self, node_uids: Collection[str]) -> QuarantineQuerySet:
        return self.in_force().filter(node_uid__in=node_uids)


class Quarantine(models.Model):
    """A cordon that an operation keeps on a node until another operation releases it.

    The row is the intent: it is written before the cordon and ends when the cordon was read back as gone.
    """

    cluster = models.ForeignKey(Cluster, models.PROTECT, related_name="quarantines")
    operation = models.ForeignKey(Operation, models.PROTECT, related_name="quarantines")
    node_uid = models.CharField(max_length=64)
    node_name = models.CharField(max_length=253)
    wanted_since = models.DateTimeField()
    placed_at = models.DateTimeField(null=True)  # when the cordon was read back
    ended_at = models.DateTimeField(null=True)  # when no cordon of ours was read any more
    removed_at = models.DateTimeField(null=True)  # when a foreign removal was observed; null: the cordon is there
    excluded = models.JSONField(null=True)  # values before it, by external controller; null: not read yet
    left_reason = models.CharField(max_length=500, blank=True)  # why the node is cordoned after it; blank: it is not

    objects = QuarantineQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["node_uid"], condition=Q(ended_at__isnull=True), name="one_quarantine_in_force_per_node"
            ),
        ]
        indexes = [models.Index(fields=["cluster"], condition=Q(ended_at=None), name="quarantines_in_force")]
        ordering = ["cluster_id", "node_name", "pk"]

    def is_being_ended(self) -> bool:
        """Returns whether an operation removes the cordon, or its own mark, now."""
        rows = OperationNode.objects.of_kinds(*ENDING_KINDS)
        return rows.filter(node_uid=self.node_uid, state=NodeProgress.RUNNING).exists()

    def end(self, *, now: datetime, left_reason: str = "") -> None:
        """Ends the quarantine and gives its place in the ledger back."""
        with transaction.atomic():
            in_force = Quarantine.objects.in_force().filter(pk=self.pk)
            if in_force.update(ended_at=now, left_reason=left_reason[:500]):
                Disruption.objects.filter(taken_by=self.operation.mark, node_uid=self.node_uid).give_back(now=now)
