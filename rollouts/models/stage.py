from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from django.db import models, transaction
from django.db.models import Q

from fleet.models import Pool
from fleet.models.visible import Visible
from rollouts.gates.approval import ApprovalGate
from rollouts.gates.base import Gate
from rollouts.gates.options import read_gates
from rollouts.lifecycle import STAGE_MOVES, StageState
from rollouts.models.plan import Plan
from rollouts.models.traffic import UNDRAIN, call_traffic_hook
from rollouts.models.transitions import Moving

if TYPE_CHECKING:
    from rollouts.models.approval import GateOverride


class StageKind(models.TextChoices):
    CANARY = "canary"  # a few nodes that stand for the others
    POOL = "pool"  # the rest of a pool, or a share of it
    ROLLBACK = "rollback"  # the rollback stage: made with the plan, used by a rollback only


class StageQuerySet(Visible["Stage"]):
    by_cluster = "plan__cluster"

    def forward(self) -> StageQuerySet:
        return self.exclude(kind=StageKind.ROLLBACK)


class Stage(Moving):
    """The part of a plan that one approval releases."""

    states = StageState
    moves = STAGE_MOVES

    plan = models.ForeignKey(Plan, models.CASCADE, related_name="stages")
    index = models.PositiveSmallIntegerField()  # the order in which stages go; the rollback stage comes last
    name = models.CharField(max_length=100)
    kind = models.CharField(max_length=16, choices=StageKind.choices)
    pool = models.ForeignKey(Pool, models.PROTECT, null=True)  # null: any node of the driver object
    selector = models.CharField(max_length=1000, blank=True)  # narrows the pool down
    sick_nodes_reason = models.CharField(max_length=1000, blank=True, default="")  # blank: it leaves sick nodes out
    count = models.PositiveIntegerField(null=True)  # null: every node that is left
    max_unavailable = models.PositiveIntegerField(default=1)  # nodes of the driver object, broken ones included
    gate_options = models.JSONField(default=dict)  # {"soak": {"duration_s": 600}, …}
    timeout_s = models.PositiveIntegerField(default=3600)  # how long a gate may wait before a person is asked

    objects = StageQuerySet.as_manager()

    class Meta:
        verbose_name = "stage of a plan"
        constraints = [
            models.UniqueConstraint(fields=["plan", "index"], name="one_stage_per_index"),
            models.CheckConstraint(condition=Q(max_unavailable__gte=1), name="a_stage_may_move_something"),
        ]
        ordering = ["plan_id", "index"]

    def __str__(self) -> str:
        return self.name

    @property
    def gates(self) -> list[Gate]:
        return read_gates(self.gate_options)

    @property
    def must_be_approved_again(self) -> bool:
        """Returns whether it asks for an approval and has no valid one."""
        asks = any(gate.key == ApprovalGate.key for gate in self.gates)
        return asks and not self.approvals.standing().filter(is_rejection=False).exists()

    def overrides_now(self, *, now: datetime) -> dict[str, GateOverride]:
        """Returns the overrides in force by gate. One query, or none if `overrides` is prefetched."""
        return {each.gate: each for each in self.overrides.all() if each.is_in_force(now=now)}

    @property
    def is_rollback(self) -> bool:
        return self.kind == StageKind.ROLLBACK

    def move(self, to: StrEnum, *, now: datetime, actor: str, reason: str) -> None:
        """Moves the stage. Once it passed, its nodes get traffic again."""
        with transaction.atomic():
            super().move(to, now=now, actor=actor, reason=reason)
            if to == StageState.PASSED:
                uids = self.targets.filter(wave__isnull=False).values_list("node_uid", flat=True)
                call_traffic_hook(UNDRAIN, self.plan, uids, now=now, actor=actor, reason=reason)

    def event_subject(self) -> dict[str, models.Model]:
        return {"plan": self.plan, "stage": self}
