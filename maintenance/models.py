from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any

from django.db import models, transaction
from django.db.models import Q

from edges.transition_errors import LostRace
from edges.transitions import write_move
from fleet.map_cells.chunks import announce_nodes
from fleet.models import Cluster, Node, Pool
from fleet.models.node import members_of
from fleet.models.visible import Visible
from health.models import Finding
from maintenance.lifecycle import CASE_MOVES, FINAL, TITLES, CaseState, RepairAnswer, RepairKind, after_validation
from maintenance.triggers import AutomaticVerdict, BreakerState, Mode
from people.models import AuditEntry

LONGEST_REASON = 1000
OVER = sorted(state.value for state in FINAL)


class CaseQuerySet(Visible["NodeCase"]):
    """Cases are visible like nodes: by cluster, and by pool while the node exists."""

    def in_pools(self, pool_ids: Collection[int]) -> Q:
        return Q(node_uid__in=Node.objects.filter(pk__in=members_of(pool_ids)).values("uid"))

    def open(self) -> CaseQuerySet:
        return self.exclude(state__in=OVER)

    def of_node(self, node_uid: str) -> CaseQuerySet:
        return self.filter(node_uid=node_uid)


class NodeCase(models.Model):
    """The time of a sick node from suspect to back in service, or retired. Its moves are its audit entries."""

    cluster = models.ForeignKey(Cluster, models.PROTECT, related_name="cases")
    node_uid = models.CharField(max_length=64)  # not a key to the row: a case outlives its node
    node_name = models.CharField(max_length=253)
    state = models.CharField(max_length=16, default=CaseState.SUSPECT.value)
    state_since = models.DateTimeField()
    state_reason = models.CharField(max_length=LONGEST_REASON)  # of the last move
    moved_by = models.CharField(max_length=150)
    opened_at = models.DateTimeField()
    opened_by = models.CharField(max_length=150)
    reason = models.CharField(max_length=LONGEST_REASON)  # of whoever opened it
    finding = models.ForeignKey(Finding, models.SET_NULL, null=True, related_name="cases")  # null: opened from a node
    fault_at = models.DateTimeField()  # of the last fault, or of the opening: a return needs a newer validation
    repaired_at = models.DateTimeField(null=True)  # end of the last repair
    passed_at = models.DateTimeField(null=True)  # of the last validation that passed
    failed_at = models.DateTimeField(null=True)  # of the last one that failed
    tested_at = models.DateTimeField(null=True)  # end of the last test Job whose result it has
    overridden_at = models.DateTimeField(null=True)  # when a person allowed the return without a validation
    overridden_by = models.CharField(max_length=150, blank=True)
    override_reason = models.CharField(max_length=LONGEST_REASON, blank=True)

    objects = CaseQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["node_uid"], condition=~Q(state__in=OVER), name="one_open_case_per_node"),
        ]
        indexes = [
            models.Index(fields=["state", "state_since"], name="cases_by_state"),
            models.Index(fields=["node_uid", "-id"], name="cases_of_node"),
        ]
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.mark

    @property
    def mark(self) -> str:
        """Returns its name in the audit chain."""
        return f"case-{self.pk}"

    @property
    def is_open(self) -> bool:
        return self.state not in FINAL

    @property
    def title(self) -> str:
        return TITLES[CaseState(self.state)]

    @property
    def moves(self) -> models.QuerySet[AuditEntry]:
        """Returns its history, the newest first."""
        return AuditEntry.objects.filter(subject=self.mark).order_by("-number")

    def move(
        self, to: CaseState, *, actor: str, reason: str, now: datetime, evidence: dict[str, Any] | None = None,
        **columns: Any,
    ) -> None:  # fmt: skip
        """Moves the case, with its audit entry.

        :raises IllegalMove: when the state table does not allow it
        :raises LostRace: when somebody else moved it first
        """
        was = CaseState(self.state)
        columns |= {"state_since": now, "state_reason": reason[:LONGEST_REASON], "moved_by": actor}
        with transaction.atomic():
            write_move(self, CASE_MOVES, was, to, **columns)
            self.record(to.value, actor=actor, reason=reason, now=now, evidence={"from": was} | (evidence or {}))
        for name, value in {"state": to.value, **columns}.items():
            setattr(self, name, value)

    def take_validation(
        self, result: str, *, actor: str, reason: str, now: datetime, evidence: dict[str, Any], **columns: Any
    ) -> None:
        """Moves the case by the result of a test, or stores the result where it moves nothing. Raises as `move`."""
        to = after_validation(CaseState(self.state), result)
        if to is not None:
            self.move(to, actor=actor, reason=reason, now=now, evidence=evidence, **columns)
            return
        with transaction.atomic():
            self.write(**columns)
            self.record("validation", actor=actor, reason=reason, now=now, evidence=evidence)

    def write(self, **columns: Any) -> None:
        """:raises LostRace: when the case has moved meanwhile"""
        if columns and not NodeCase.objects.filter(pk=self.pk, state=self.state).update(**columns):
            raise LostRace(f"The case is no longer {self.state}.")

    def record(
        self, what: str, *, actor: str, reason: str, now: datetime, evidence: dict[str, Any] | None = None
    ) -> None:
        """Adds an audit entry. Pages of the node are notified after the commit."""
        AuditEntry.record(
            self.mark, verb=f"case.{what}", actor=actor, reason=reason[:LONGEST_REASON], evidence=evidence, now=now
        )
        node = Node.objects.filter(cluster=self.cluster_id, uid=self.node_uid)
        transaction.on_commit(lambda: announce_nodes(self.cluster_id, node, kind="cases", at=now), robust=True)


class Repair(models.Model):
    """A repair that a person was asked for, with the answer. The case waits for it."""

    case = models.ForeignKey(NodeCase, models.CASCADE, related_name="repairs")
    kind = models.CharField(max_length=16, choices=[(kind.value, kind.value) for kind in RepairKind])
    asked_by = models.CharField(max_length=150)
    asked_at = models.DateTimeField()
    note = models.CharField(max_length=LONGEST_REASON)
    link = models.CharField(max_length=500, blank=True)  # of a ticket
    deadline = models.DateTimeField()
    came_from = models.CharField(max_length=16)  # the state to which a repair that is not done returns
    boot_id = models.CharField(max_length=64, blank=True)  # of the node when it was asked; blank: not reported
    answer = models.CharField(max_length=16, blank=True, choices=[(each.value, each.value) for each in RepairAnswer])
    answered_by = models.CharField(max_length=150, blank=True)
    answer_note = models.CharField(max_length=LONGEST_REASON, blank=True)
    ended_at = models.DateTimeField(null=True)  # null: no answer, or a reboot that is not proven

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["case"], condition=Q(ended_at=None), name="one_repair_at_a_time_per_case"),
        ]
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.kind} of {self.case}"


class AutomaticQuerySet(Visible["AutomaticQuarantine"]):
    by_cluster = "pool__cluster"

    def in_pools(self, pool_ids: Collection[int]) -> Q:
        return Q(pool__in=pool_ids)


class AutomaticQuarantine(models.Model):
    """The mode and the breaker of a pool's automatic quarantine. Without a row it is off."""

    pool = models.OneToOneField(Pool, models.CASCADE, related_name="automatic_quarantine")
    mode = models.CharField(max_length=16, default=Mode.OFF.value, choices=[(mode.value, mode.value) for mode in Mode])
    mode_since = models.DateTimeField()
    changed_by = models.CharField(max_length=150)
    reason = models.CharField(max_length=LONGEST_REASON)  # of the last change of the mode
    breaker = models.CharField(max_length=16, default=BreakerState.CLOSED.value)
    breaker_since = models.DateTimeField()
    breaker_reason = models.CharField(max_length=LONGEST_REASON, blank=True)
    evidence_after = models.DateTimeField()  # earlier findings start nothing: the last change of mode or reset
    epoch = models.PositiveBigIntegerField(default=0)  # counts the acts and the changes

    objects = AutomaticQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(breaker__in=[state.value for state in BreakerState]), name="a_breaker_has_a_known_state"
            ),
        ]
        ordering = ["pool_id"]

    def __str__(self) -> str:
        return self.mark

    @property
    def mark(self) -> str:
        """Returns its name in the audit chain."""
        return f"automatic-quarantine-{self.pool_id}"

    @property
    def is_breaker_closed(self) -> bool:
        return self.breaker == BreakerState.CLOSED

    def same(self) -> AutomaticQuerySet:
        """Returns its row if nobody has changed it since it was read."""
        return AutomaticQuarantine.objects.filter(pk=self.pk, epoch=self.epoch, mode=self.mode, breaker=self.breaker)

    def change(self, **columns: Any) -> None:
        """:raises LostRace: when somebody changed it first"""
        if not self.same().update(epoch=self.epoch + 1, **columns):
            raise LostRace("The automatic quarantine of the pool was changed at the same time.")
        for name, value in {"epoch": self.epoch + 1, **columns}.items():
            setattr(self, name, value)


class AutomaticDecision(models.Model):
    """A decision of the automatic quarantine about one finding. A finding is decided once."""

    automatic = models.ForeignKey(AutomaticQuarantine, models.CASCADE, related_name="decisions")
    at = models.DateTimeField()
    finding = models.OneToOneField(Finding, models.SET_NULL, null=True, related_name="automatic_decision")
    node_uid = models.CharField(max_length=64)
    node_name = models.CharField(max_length=253)
    trigger = models.CharField(max_length=32)  # key of TRIGGERS
    verdict = models.CharField(max_length=16, choices=[(each.value, each.value) for each in AutomaticVerdict])
    reason = models.CharField(max_length=LONGEST_REASON)
    evidence = models.JSONField(default=dict)  # version of the table, the finding, the numbers of the breaker
    case = models.ForeignKey(NodeCase, models.SET_NULL, null=True, related_name="automatic_decisions")

    class Meta:
        indexes = [models.Index(fields=["automatic", "-at"], name="decisions_of_automatic")]
        ordering = ["-at", "-pk"]

    def __str__(self) -> str:
        return f"{self.verdict} {self.node_name}"
