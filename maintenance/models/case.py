from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any

from django.db import models, transaction
from django.db.models import Q

from edges.transition_errors import LostRace
from edges.transitions import write_move
from fleet.models import Cluster, DomainEvent, Node
from fleet.models.node import members_of
from fleet.models.visible import Visible
from health.models import Finding
from maintenance.lifecycle import CASE_MOVES, FINAL, TITLES, CaseState, after_validation
from people.models import AuditEntry

LONGEST_REASON = 1000
# Kinds of `fleet.event_kinds`.
OPENED, CHANGED, BLOCKED = "case.opened", "case.changed", "case.blocked"
CONTINUED, FINISHED = "case.continued", "case.finished"
OVER = sorted(state.value for state in FINAL)
GOES_ON = frozenset({CaseState.DRAINING, CaseState.IN_REPAIR, CaseState.VALIDATING, CaseState.PROBATION})


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
    reason = models.CharField(max_length=LONGEST_REASON)  # given by the person who opened it
    finding = models.ForeignKey(Finding, models.SET_NULL, null=True, related_name="cases")  # null: opened from a node
    fault_at = models.DateTimeField()  # of the last fault, or of the opening: a return needs a newer validation
    repaired_at = models.DateTimeField(null=True)  # end of the last repair
    passed_at = models.DateTimeField(null=True)  # of the last validation that passed
    failed_at = models.DateTimeField(null=True)  # time of its last failure
    tested_at = models.DateTimeField(null=True)  # end of the last test Job whose result it has
    overridden_at = models.DateTimeField(null=True)  # when a person allowed the return without a validation
    overridden_by = models.CharField(max_length=150, blank=True)
    override_reason = models.CharField(max_length=LONGEST_REASON, blank=True)
    automatic_at = models.DateTimeField(null=True)  # of the last automatic step; null: people do all steps
    is_new = models.BooleanField(db_default=False, default=False)  # the node was never in service when it began
    # The gate that holds the new node. Null: the node is not new, or the pool was deleted.
    gate = models.ForeignKey("maintenance.NewNodeGate", models.SET_NULL, null=True, related_name="cases")
    needed_test = models.CharField(max_length=32, db_default="", blank=True)  # that validates it; blank: by its fault
    waits_for = models.CharField(max_length=LONGEST_REASON, db_default="", blank=True)  # what a new node still lacks
    handed_over_at = models.DateTimeField(null=True)  # the end of the automatic steps
    handed_over_to = models.CharField(max_length=150, db_default="", blank=True)  # blank: the person on call
    handed_over_reason = models.CharField(max_length=LONGEST_REASON, db_default="", blank=True)

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
    def state_version(self) -> str:
        """Returns the state and its begin: what a person saw before an act."""
        return f"{self.state} {self.state_since.isoformat().replace('+00:00', 'Z')}"

    @property
    def title(self) -> str:
        return TITLES[CaseState(self.state)]

    @property
    def is_automatic(self) -> bool:
        """Returns whether its next steps are automatic."""
        return self.is_open and self.automatic_at is not None and self.handed_over_at is None

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
        columns |= {"state_since": now, "state_reason": reason[:LONGEST_REASON], "moved_by": actor, "waits_for": ""}
        with transaction.atomic():
            write_move(self, CASE_MOVES, was, to, **columns)
            evidence = {"from": was} | (evidence or {})
            of_event = {"event": _event_of_move(was, to), "state": to.value}
            self.record(to.value, actor=actor, reason=reason, now=now, evidence=evidence, **of_event)
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

    def hand_over(self, to: str, *, actor: str, reason: str, now: datetime) -> None:
        """Ends the automatic steps. `to`: a person; blank: whoever is on call.

        :raises LostRace: when they ended already, or the case moved meanwhile
        """
        columns = {"handed_over_at": now, "handed_over_to": to, "handed_over_reason": reason[:LONGEST_REASON]}
        columns |= {"waits_for": ""}  # no round renews it
        with transaction.atomic():
            same = NodeCase.objects.filter(pk=self.pk, state=self.state, handed_over_at=None)
            if not same.exclude(automatic_at=None).update(**columns):
                raise LostRace("The case has no automatic steps any more, or moved at the same time.")
            kind = CHANGED if to else BLOCKED
            self.record("handed-over", actor=actor, reason=reason, now=now, evidence={"to": to}, event=kind)
        for name, value in columns.items():
            setattr(self, name, value)

    def record(
        self, what: str, *, actor: str, reason: str, now: datetime, evidence: dict[str, Any] | None = None,
        event: str = CHANGED, state: str = "",
    ) -> None:  # fmt: skip
        """Adds an audit entry and its domain event, which is the line on pages. `state` blank: the present one."""
        reason = reason[:LONGEST_REASON]
        AuditEntry.record(self.mark, verb=f"case.{what}", actor=actor, reason=reason, evidence=evidence, now=now)
        facts = {
            "case": self.pk, "severity": "warning", "actor": actor, "reason": reason, "state": state or self.state,
            "what": what.replace("-", " "),
        }  # fmt: skip
        DomainEvent.write(
            [
                DomainEvent.of(
                    event, f"case/{self.pk}", cluster_id=self.cluster_id, at=now, facts=facts, node_uid=self.node_uid,
                    node_name=self.node_name,
                )
            ]
        )  # fmt: skip


def _event_of_move(was: CaseState, to: CaseState) -> str:
    if to == CaseState.DRAIN_BLOCKED:
        return BLOCKED
    if to in FINAL:
        return FINISHED
    return CONTINUED if was == CaseState.DRAIN_BLOCKED or to in GOES_ON else CHANGED
