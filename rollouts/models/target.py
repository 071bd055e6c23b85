from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum

from django.db import models
from django.db.models import Exists, OuterRef, Q

from edges.transitions import write_moves
from fleet.models.visible import Visible
from rollouts.lifecycle import BEGUN, IN_FLIGHT, PLAN_FINAL, TARGET_MOVES, TargetState
from rollouts.models.cordon import Cordon, Exclusion
from rollouts.models.hold import Hold
from rollouts.models.stage import Stage, StageKind
from rollouts.models.transitions import Moving, record_events


class Wave(models.Model):
    """The nodes of a stage that are released together. The intent: written before the first label."""

    stage = models.ForeignKey("rollouts.Stage", models.CASCADE, related_name="waves")
    number = models.PositiveIntegerField()  # 1, 2, 3 …
    decided_at = models.DateTimeField()
    reason = models.CharField(max_length=500)  # limit of the wave's size, and its reason

    class Meta:
        constraints = [models.UniqueConstraint(fields=["stage", "number"], name="one_wave_per_number")]
        ordering = ["stage_id", "number"]


class Shown(StrEnum):
    """Display states of targets beside their own: before labels are on, and after a rollback."""

    NOT_HELD = "not-held"  # its hold label is intended, but was not read back yet
    NOT_BEGUN = "not-begun"  # left as it was: its hold is off, and it was never changed
    BACK = "back"  # it had changed, and runs the old version again
    STILL_HELD = "held"  # it had begun, and the plan ended before it changed


class TargetQuerySet(Visible["Target"]):
    by_cluster = "stage__plan__cluster"

    def forward(self) -> TargetQuerySet:
        return self.exclude(stage__kind=StageKind.ROLLBACK)

    def with_holds(self) -> TargetQuerySet:
        """Adds whether we hold the node, want to, or it is back, for `shown_state`."""
        same_node = {"node_uid": OuterRef("node_uid")}
        holds = Hold.objects.filter(plan=OuterRef("stage__plan"), **same_node)
        back = Target.objects.filter(stage__plan=OuterRef("stage__plan"), stage__kind=StageKind.ROLLBACK, **same_node)
        seen = {
            "is_kept": Exists(holds.blocking_changes()),
            "is_unlabelled": Exists(holds.filter(is_wanted=True, placed_at=None, is_foreign=False)),
            "is_back": Exists(back.filter(state=TargetState.CHANGED)),
        }
        return self.annotate(**seen)

    def back_on_old_version(self) -> TargetQuerySet:
        """Returns the targets that `shown_state` shows as back."""
        is_put_back = Q(stage__plan__put_back_at__isnull=False, stage__plan__state__in=sorted(PLAN_FINAL))
        begun = self.forward().filter(state__in=sorted(BEGUN)).with_holds()
        return begun.filter(Q(is_back=True) | (is_put_back & Q(is_kept=False)))


def move_targets(targets: Sequence[Target], to: TargetState, *, now: datetime, actor: str, reason: str) -> None:
    """Moves many targets of one stage with their history, as `move` does one. Three statements per thousand.

    Call it in a transaction.

    :raises IllegalMove, LostRace: as every move; nothing may be committed then
    """
    if not targets:
        return
    reason, stage = reason[:1000], targets[0].stage
    write_moves(targets, TARGET_MOVES, to, state_since=now, reason=reason)
    record_events(
        plan=stage.plan, stage=stage, what="target", was={target: target.state for target in targets}, to=to,
        now=now, actor=actor, reason=reason,
    )  # fmt: skip
    for target in targets:
        target.state, target.state_since, target.reason = to, now, reason


class Target(Moving):
    states = TargetState
    moves = TARGET_MOVES

    stage = models.ForeignKey(Stage, models.CASCADE, related_name="targets")
    wave = models.ForeignKey(Wave, models.SET_NULL, null=True, related_name="targets")
    position = models.PositiveIntegerField()  # the order in which targets are released
    node_uid = models.CharField(max_length=64)
    node_name = models.CharField(max_length=253)
    facts = models.JSONField(default=dict)  # kernel, os_image, gpu_product, zone, … when the plan was sealed
    baseline = models.JSONField(null=True)  # the node when its release was decided; null: not released yet
    released_at = models.DateTimeField(null=True)  # when the label was seen to be gone
    retried_at = models.DateTimeField(null=True)  # when a person last asked for another try; null: nobody has
    has_escaped = models.BooleanField(default=False)  # it changed although it was held
    tenants_ready_at = models.DateTimeField(null=True)  # when a round first saw a tenant's pod Ready since it changed
    is_lost = models.BooleanField(default=False)  # its node disappeared after its release: counts as failed

    objects = TargetQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["stage", "node_uid"], name="one_target_per_node")]
        ordering = ["stage_id", "position"]

    is_kept: bool  # set by `with_holds`
    is_unlabelled: bool  # set by `with_holds`: we want to keep it, and its label was not read back yet
    cordon: Cordon | None  # set for pages: the cordon that keeps pods off its node until a test passes
    exclusions: list[Exclusion]  # set for pages: exclusions that keep controllers off its node
    is_back: bool  # set by `with_holds`: it runs the old version again, while others may still be on their way

    @property
    def shown_state(self) -> str:
        """Returns its display state: after a restored version the hold tells the node's state."""
        if self.state == TargetState.HELD and not self.is_kept:
            return Shown.NOT_BEGUN
        if self.state == TargetState.HELD and self.is_unlabelled:
            return Shown.NOT_HELD
        if self.is_back and self.state in BEGUN and not self.stage.is_rollback:
            return Shown.BACK
        if self.state in (TargetState.EXCLUDED, TargetState.HELD) or not self._is_put_back:
            return self.state
        if self.is_kept:
            return Shown.STILL_HELD if self.state in IN_FLIGHT else self.state
        return Shown.BACK if self.state in BEGUN else Shown.NOT_BEGUN

    @property
    def _is_put_back(self) -> bool:
        plan = self.stage.plan
        return plan.is_final and plan.put_back_at is not None and not self.stage.is_rollback

    def event_subject(self) -> dict[str, models.Model]:
        return {"plan": self.stage.plan, "stage": self.stage, "target": self}
