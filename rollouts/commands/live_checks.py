"""Requests a live check of a draft, and a start that depends on it. A worker asks the cluster."""

from datetime import datetime
from typing import Any

from django.db import transaction

from edges.idempotency import EarlierCommand, is_done
from edges.transition_errors import IllegalMove, LostRace
from people.models import AuditEntry, User
from rollouts.commands.plan_control import is_carried_out
from rollouts.commands.plan_start import CHANGED, AskedStart, look_before
from rollouts.commands.refusals import OutOfDate, Refusal
from rollouts.lifecycle import PlanState
from rollouts.models import LiveCheck, Plan
from rollouts.models.transitions import record_event
from rollouts.preflight.live_checks.latest import TAKEN_BY, why_no_live_check
from wording.durations import spell
from wording.instants import to_the_second

ASKING = (
    "The start is requested. The cluster is checked first; nothing in it has changed yet. If no worker begins "
    f"within {spell(TAKEN_BY)}, the start is cancelled."
)


def ask(plan: Plan, *, actor: User, now: datetime) -> LiveCheck:
    """Requests a live check. A request while another is pending returns that one.

    :raises Refusal: when the plan is neither a draft nor releasing nodes, or its cluster may not be changed
    """
    if reason := why_no_live_check(plan):
        raise Refusal(reason)
    row = _create_row(plan, now=now)
    if row.is_in_force:
        return row
    asked: dict[str, Any] = {"is_start": False, "reason": "", "override_reason": "", "key": ""}
    return _write(plan, row, asked, actor=actor, now=now)


def ask_start(
    plan: Plan,
    *,
    actor: User,
    reason: str,
    expected_revision: int,
    override_reason: str = "",
    key: str = "",
    now: datetime,
) -> None:
    """Requests a start after a live check; blockers in rows are refused at once. Repeating the key is the same start.

    :raises OutOfDate: when the draft is not the one that the caller saw
    :raises Blocked: with the blockers
    :raises Refusal: when it is no draft, or its start is requested already or was undone
    """
    asked = AskedStart(actor, reason, override_reason, expected_revision, key)
    if _is_on_its_way(plan, asked):
        return
    try:
        look_before(plan, asked, now=now)
        row = _create_row(plan, now=now)
        _refuse_a_second(row)
        written = {"is_start": True, "reason": reason[:1000], "override_reason": override_reason[:1000], "key": key}
        _write(plan, row, written, actor=actor, now=now)
    except (IllegalMove, LostRace, Refusal):
        # The same request was sent twice at once: the first one does not refuse the second.
        if not _is_on_its_way(plan, asked):
            raise


def _is_on_its_way(plan: Plan, asked: AskedStart) -> bool:
    """Returns whether this very start is pending or done. The check is read first, since it ends as the plan starts.

    :raises Refusal: when the start was undone since, or its key belongs to another command
    """
    row = LiveCheck.objects.in_force().filter(plan=plan, is_start=True, asked_by=asked.actor.get_username()).first()
    earlier = None
    if row is not None:
        its = AskedStart(asked.actor, row.reason, row.override_reason, row.revision, row.key)
        earlier = EarlierCommand(its.idempotency_key, row.asked_at, holds=True, now_is=lambda: ASKING)
    return is_done(asked.idempotency_key, earlier, refusal=Refusal) or is_carried_out(plan, asked.idempotency_key)


def _refuse_a_second(row: LiveCheck) -> None:
    if row.is_in_force and row.is_start:
        at = to_the_second(row.asked_at)
        raise Refusal(
            f"{row.asked_by} requested the start at {at}, and the check of the cluster is in "
            "progress. Wait until it ends."
        )


def _create_row(plan: Plan, *, now: datetime) -> LiveCheck:
    row, _ = LiveCheck.objects.get_or_create(
        plan=plan, defaults={"asked_by": "", "asked_at": now, "revision": plan.revision, "lease_until": now}
    )
    return row


def _write(plan: Plan, row: LiveCheck, asked: dict[str, Any], *, actor: User, now: datetime) -> LiveCheck:
    who, is_start = actor.get_username(), bool(asked["is_start"])
    verb = "ask-start" if is_start else "check-live"
    what = "would stand against the start" if plan.state == PlanState.DRAFT else "stands against the nodes still to go"
    reason = asked["reason"] or f"The cluster itself is asked what {what}."
    with transaction.atomic():
        Plan.objects.select_for_update(no_key=True).only("pk").get(
            pk=plan.pk
        )  # two writers of one chain, one after the other
        if is_start:
            draft = Plan.objects.filter(pk=plan.pk, state=PlanState.DRAFT, revision=plan.revision)
            if not draft.update(waiting_for=ASKING):
                raise OutOfDate(CHANGED)
        if not row.ask(asked_by=who, revision=plan.revision, now=now, **asked):
            raise Refusal("Somebody else requested a check at the same moment. Wait for its result.")
        AuditEntry.record(plan.mark, verb=verb, actor=who, reason=reason, now=now)
        record_event(plan=plan, what="note", was="", to=verb, now=now, actor=who, reason=reason)
    row.refresh_from_db()
    LiveCheck.queue_round(row.pk)
    return row
