"""Approval or rejection of a stage, for exactly the bundle that the person saw."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction

from people.models import AuditEntry, User
from people.roster.groups import groups_of, members
from rollouts.approvals.approvers import counts_not, gate_of
from rollouts.approvals.bundles import Bundle, bundle_for
from rollouts.approvals.decisions import why_a_reason, why_no_decision
from rollouts.approvals.shown_bundles import changed_since, in_one
from rollouts.commands.refusals import AlreadyDecided, NotYours, ReasonNeeded, Refusal, StaleBundle
from rollouts.lifecycle import StageState
from rollouts.models import Approval, Plan, Stage
from rollouts.models.transitions import record_event

__all__ = ["Bundle", "approve", "bundle_for", "reject"]

WHY_REJECT = "Give a reason, so that the author can correct the plan."


def approve(stage: Stage, *, actor: User, bundle_hash: str, reason: str, now: datetime) -> Approval:
    """Approves a stage.

    :raises NotYours: for the author, the last editor, and people outside of the required groups
    :raises StaleBundle: when plan, targets or gate results have changed since they were shown
    :raises Refusal: when the plan does not move now
    :raises ReasonNeeded: without a reason where a gate result is not green
    :raises AlreadyDecided: when this person has decided already
    """
    asked = AskedDecision(actor, bundle_hash, reason, is_rejection=False)
    return _store_decision(stage, asked, now=now)


def reject(stage: Stage, *, actor: User, bundle_hash: str, reason: str, now: datetime) -> Approval:
    """Rejects a stage with a reason, even if what was shown has changed. The stage halts at the next round.

    :raises Refusal: without a reason; else as `approve`, except for `StaleBundle`
    """
    if not reason.strip():
        raise Refusal(WHY_REJECT)
    return _store_decision(stage, AskedDecision(actor, bundle_hash, reason, is_rejection=True), now=now)


@dataclass(frozen=True)
class AskedDecision:
    actor: User
    bundle_hash: str
    reason: str
    is_rejection: bool


def _store_decision(stage: Stage, asked: AskedDecision, *, now: datetime) -> Approval:
    plan, who = stage.plan, asked.actor.get_username()
    if not plan.author or not plan.last_editor:
        raise NotYours("The author of this plan is unknown, so nobody may approve it. Draft the plan again.")
    if who in plan.proposers:
        raise NotYours(f"You wrote, changed or started this plan. Somebody other than {who} has to decide.")
    if closed := why_no_decision(stage):
        raise Refusal(closed)
    try:
        with transaction.atomic():
            # An earlier halt or pause is visible here; a later one waits for this transaction.
            stage.plan = Plan.objects.select_for_update(no_key=True).get(pk=plan.pk)
            if closed := why_no_decision(stage):
                raise Refusal(closed)
            # The guarded update comes first: it locks the plan's row, so that no round changes the stage meanwhile.
            if not Stage.objects.filter(pk=stage.pk, state=StageState.OPENING).update(state=StageState.OPENING):
                stage.refresh_from_db(fields=["state"])
                moved = f"{stage.name} is {stage.state} now."
                raise StaleBundle(f"{moved} Read it again.", [moved])
            bundle = bundle_for(stage)
            # Only an approval depends on the bundle that was shown; a rejection does not.
            if not asked.is_rejection and bundle.hash != asked.bundle_hash:
                changed = changed_since(stage, asked.bundle_hash, bundle)
                said = f"The stage has changed since you read it. {in_one(changed)} Read it again before you decide."
                raise StaleBundle(said, changed)
            if not asked.reason.strip() and (needed := why_a_reason(stage, bundle, now=now)):
                raise ReasonNeeded(f"Give a reason for the approval: {needed}.")
            given_for = _groups_given_for(stage, asked)
            approval = Approval.objects.create(
                stage=stage,
                bundle={"content": bundle.content, "evidence": bundle.evidence, **given_for},
                bundle_hash=bundle.hash,
                by=who,
                at=now,
                is_rejection=asked.is_rejection,
                reason=asked.reason,
            )
            _write_down(stage, approval, bundle, given_for, now=now)
            did = "rejected" if asked.is_rejection else "approved"
            plan.say(f"{stage.name}: {who} {did} it; every gate is evaluated again.")
    except IntegrityError as clash:
        raise AlreadyDecided("You have already decided on this stage.") from clash
    plan.wake(now=now)
    return approval


def _groups_given_for(stage: Stage, asked: AskedDecision) -> dict[str, list[str]]:
    """Returns the required groups that the person is in; leaving them voids the approval.

    :raises NotYours: when their approval would not count
    """
    gate = gate_of(stage)
    if gate is None or not gate.groups or asked.is_rejection:
        return {}
    who = asked.actor.get_username()
    if refusal := counts_not(gate, who, stage.approvals.standing(), members(gate.groups)):
        raise NotYours(refusal)
    return {"groups": list(groups_of([who], among=gate.groups)[who])}


def _write_down(
    stage: Stage, approval: Approval, bundle: Bundle, given_for: dict[str, list[str]], *, now: datetime
) -> None:
    verb = "reject" if approval.is_rejection else "approve"
    evidence: dict[str, Any] = {
        "bundle_hash": bundle.hash, "content": bundle.content, "evidence": bundle.evidence, **given_for
    }  # fmt: skip
    record_event(
        plan=stage.plan,
        stage=stage,
        what="approval",
        was="",
        to=verb,
        now=now,
        actor=approval.by,
        reason=approval.reason,
    )
    AuditEntry.record(stage.plan.mark, verb=verb, actor=approval.by, reason=approval.reason, evidence=evidence, now=now)
