"""Voids outdated approvals, and sets stages that need an approval after all."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.db import transaction

from people.models import User
from people.rights import Permission, scope_of
from people.roster.groups import groups_of
from rollouts.approvals.approvers import gate_of
from rollouts.approvals.automatic_approvals import add_needed_approvals, to_ask
from rollouts.approvals.bundles import bundle_for
from rollouts.lifecycle import StageState
from rollouts.models import Approval, Plan, Stage
from rollouts.models.transitions import record_event
from wording.durations import spell
from wording.lists import names


def ask_again(plan: Plan, stages: Iterable[Stage], *, now: datetime) -> bool:
    """Sets stages to wait for an approval where nodes joined a production pool since the start; returns whether it did.

    Mostly no node has, and nothing is written.
    """
    if not to_ask(plan, stages):
        return False
    with transaction.atomic():
        plan.keep_lease(now=now)
        add_needed_approvals(plan, actor="engine", now=now)
    return True


def void_approvals(plan: Plan, stages: Iterable[Stage], *, now: datetime) -> None:
    """Voids approvals whose evidence has changed. New numbers with the same gate results keep them.

    A rejection always stays.
    """
    for stage in (each for each in stages if each.state == StageState.OPENING):
        standing = Approval.objects.filter(stage=stage, is_rejection=False).standing()
        if not standing.exists():
            continue
        reason = "The targets, gates or gate results have changed since the approval."
        _void(plan, stage, standing.exclude(bundle_hash=bundle_for(stage).hash), reason, now=now)
        _void_expired_approvals(plan, stage, now=now)
        _void_approvals_without_right(plan, stage, now=now)


def _void_expired_approvals(plan: Plan, stage: Stage, *, now: datetime) -> None:
    """Voids an expired approval, so that its author sees that and can give another."""
    if gate := gate_of(stage):
        old = Approval.objects.filter(stage=stage, is_rejection=False, at__lt=now - gate.valid_for).standing()
        reason = f"The approval has expired. An approval is valid for {spell(gate.valid_for)}."
        _void(plan, stage, old, reason, now=now)


def _void_approvals_without_right(plan: Plan, stage: Stage, *, now: datetime) -> None:
    """Voids approvals of people who lost the right to give them."""
    given = list(Approval.objects.filter(stage=stage, is_rejection=False).standing())
    givers = User.objects.filter(username__in=[approval.by for approval in given]).prefetch_related("bindings")
    may = {each.username for each in givers if scope_of(each, Permission.APPROVE).covers_cluster(plan.cluster_id)}
    for approval in given:
        if approval.by not in may:
            reason = f"{approval.by} may no longer approve here: the role was removed, or the account was disabled."
            _void(plan, stage, [approval], reason, now=now)
        elif left := _groups_left(approval):
            _void(plan, stage, [approval], f"{approval.by} is no longer a member of {names(left)}.", now=now)


def _groups_left(approval: Approval) -> tuple[str, ...]:
    """Returns the groups that the approval was given for and that the person has left. No query without such groups."""
    given_for = approval.bundle.get("groups", [])
    now_in = groups_of([approval.by], among=given_for)[approval.by]
    return tuple(group for group in given_for if group not in now_in)


def void_every_approval(plan: Plan, reason: str, *, now: datetime) -> None:
    """Voids the approvals of the stages that have not passed."""
    for stage in plan.stages.forward().exclude(state=StageState.PASSED):
        _void(plan, stage, Approval.objects.filter(stage=stage).standing(), reason, now=now)


def _void(plan: Plan, stage: Stage, approvals: Iterable[Approval], reason: str, *, now: datetime) -> None:
    told: dict[str, Any] = {"what": "approval", "to": "void", "actor": "engine", "reason": reason}
    for approval in approvals:
        was = "reject" if approval.is_rejection else "approve"
        with transaction.atomic():
            plan.keep_lease(now=now)
            standing = Approval.objects.filter(pk=approval.pk, void_at__isnull=True)
            if standing.update(void_at=now, void_reason=reason[:500]):
                record_event(plan=plan, stage=stage, was=was, now=now, **told)
