"""Commands to a plan in progress. Each is one transaction: the command, the moves, the audit entry.

A halt and a pause first write a row that is in force from its commit, whoever has locked the plan.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

import structlog
from django.db import IntegrityError, OperationalError, transaction

from edges.idempotency import EarlierCommand, IdempotencyKey, is_done
from edges.locks import is_lock_timeout, wait_for_locks
from edges.transition_errors import LostRace
from fleet.models import Node
from people.models import AuditEntry, User
from rollouts.commands.refusals import OutOfDate, Refusal
from rollouts.lifecycle import IN_FLIGHT, PlanState, StageState, TargetState, is_lost
from rollouts.models import Command, Hold, PendingCommand, Plan, Stage, StageKind, Target, Verb
from rollouts.models.target import move_targets
from rollouts.models.transitions import record_event
from rollouts.queries.completion import LEFT_OUT, completion_of
from rollouts.verbs import VERBS, is_in_effect, why_not_now
from wording.instants import to_the_second
from wording.sentences import with_period

log = structlog.get_logger()

TRIES = 5  # a round moves a row in milliseconds: losing to it five times running is a bug
SAYS = {  # shown until the next round: the earlier reason for waiting is no longer true
    Verb.HALT: "Halting: released nodes that have not begun are held again.",
    Verb.RESUME: "Resuming: the cluster is checked first.",
    Verb.ROLLBACK: "Rolling back: every node is held before the old version is put back.",
    Verb.COMPLETE: "Continuing without the excluded nodes: the cluster is checked first.",
    Verb.HANDOVER: "Handing over: the cluster is checked first.",
    Verb.CORDON: "Halted. The affected nodes are being cordoned.",
    Verb.ABORT: "Aborting: released nodes that have not begun are held again.",
}
IN_FORCE = {
    Verb.HALT: "Halted: no more nodes are released.",
    Verb.PAUSE: "Paused: no more nodes are released.",
}
FOLLOWS = {  # where another transaction has locked the plan
    Verb.HALT: "The plan shows the halt within seconds, when its lock is free.",
    Verb.PAUSE: "The plan shows the pause within seconds, when its lock is free.",
}
NOT_RECORDED = "The database could not record it in the plan. Quarterdeck tries again every second. Check the database."
OPEN = (StageState.OPENING, StageState.PROMOTING, StageState.SOAKING)


def halt(plan: Plan, *, actor: User, reason: str, key: str = "", expected_state: str = "", now: datetime) -> str:
    """Halts the plan at once. It returns a sentence if the plan's own rows follow later; empty otherwise.

    :raises Refusal: when there is nothing to halt
    """
    return _stop_at_once(plan, Verb.HALT, actor=actor, reason=reason, key=key, expected_state=expected_state, now=now)


def pause(plan: Plan, *, actor: User, reason: str, key: str = "", expected_state: str = "", now: datetime) -> str:
    """Pauses the plan: no releases, and released nodes that have not begun are held again. Gates are still evaluated.

    It returns a sentence if the plan's own rows follow later; empty otherwise.

    :raises Refusal: when it is paused already or not in progress
    """
    return _stop_at_once(plan, Verb.PAUSE, actor=actor, reason=reason, key=key, expected_state=expected_state, now=now)


def _halt(plan: Plan, *, actor: str, reason: str, now: datetime) -> None:
    plan.move(PlanState.HALTED, now=now, actor=actor, reason=reason)
    for stage in plan.stages.forward().filter(state__in=OPEN):
        stage.move(StageState.HALTED, now=now, actor=actor, reason=reason)


def _pause(plan: Plan, *, actor: str, reason: str, now: datetime) -> None:
    record_event(plan=plan, what="command", was="", to="pause", now=now, actor=actor, reason=reason)


STOPS: Mapping[str, Callable[..., None]] = {Verb.HALT: _halt, Verb.PAUSE: _pause}


def _stop_at_once(
    plan: Plan, verb: Verb, *, actor: User, reason: str, key: str, expected_state: str, now: datetime
) -> str:
    """Puts the command in force by a row that waits for no lock, then records it in the plan.

    If the plan is locked, the row stays in force until a sweep has recorded it.
    """
    who, body = actor.get_username(), {"reason": reason, "expected_state": expected_state}
    named = IdempotencyKey.of(key, person=who, verb=verb, body=body)
    plan.refresh_from_db()
    if is_carried_out(plan, named):
        return ""
    try:
        _check_request(plan, verb, expected_state=expected_state)
    except Refusal:
        if not is_carried_out(plan, named):  # by the same command, in this moment
            raise
        return ""
    asked = PendingCommand.objects.create(plan=plan, verb=verb, actor=who, at=now, key=key, **body)
    try:
        with wait_for_locks():
            record_stop(asked, plan=plan, actor=actor, now=now)
    except (LostRace, OperationalError) as held:
        is_locked = isinstance(held, LostRace) or is_lock_timeout(held)
        if not is_locked and not PendingCommand.objects.filter(pk=asked.pk).exists():
            if not plan.commands.filter(verb=verb, actor=who, at=now, key=key).exists():
                raise  # neither in force nor recorded
            return ""
        log.warning("a stop is in force and written down later", plan=plan.mark, verb=verb, reason=str(held))
        return f"{IN_FORCE[verb]} {FOLLOWS[verb] if is_locked else NOT_RECORDED}"
    return ""


def record_stop(asked: PendingCommand, *, plan: Plan, actor: User, now: datetime) -> None:
    """Records a halt or pause that is in force already, once, whatever state the plan has now.

    :raises Refusal: when it makes no sense any more; it is then not in force
    :raises LostRace, OperationalError: when it cannot be recorded now; it stays in force
    """

    def act(plan: Plan) -> dict[str, Any] | None:
        if not _end(asked):
            raise Refusal("The command is already recorded.")
        STOPS[asked.verb](plan, actor=asked.actor, reason=asked.reason, now=now)
        return {"in_force_since": asked.at} if asked.at != now else None

    also = {"expected_state": asked.expected_state}
    told: dict[str, Any] = {"reason": asked.reason, "key": asked.key, "expected_state": "", "also": also}
    try:
        carry_out_once(plan, Verb(asked.verb), act, actor=actor, now=now, **told)
    except Refusal:
        if _end(asked):
            raise
        return  # written down by a sweep in this moment
    _end(asked)


def record_stops(plan: Plan, *, now: datetime) -> None:
    """Records halts and pauses in force before a later command."""
    for asked in plan.pending.restraining():
        with suppress(Refusal):  # the plan can no longer be stopped: the caller gets the refusal
            record_stop(asked, plan=plan, actor=User(username=asked.actor), now=now)


def _end(asked: PendingCommand) -> bool:
    """Ends the pending row; returns False if somebody else has done so."""
    return bool(PendingCommand.objects.filter(pk=asked.pk).delete()[0])


def resume(plan: Plan, *, actor: User, reason: str, key: str = "", expected_state: str = "", now: datetime) -> None:
    """Ends a pause, or continues after a halt. Gates are evaluated again: a failing one halts again.

    :raises Refusal: when it is neither paused nor halted
    """

    def act(plan: Plan) -> None:
        _take_up(plan, actor=actor, reason=reason, now=now)

    carry_out_once(plan, Verb.RESUME, act, actor=actor, reason=reason, key=key, expected_state=expected_state, now=now)


def _take_up(plan: Plan, *, actor: User, reason: str, now: datetime) -> None:
    _end_pause(plan, actor=actor, now=now)
    plan.accept_template_change()
    if plan.state == PlanState.HALTED:
        # An intent that was not seen through is: until the write was read back, the old version is no foreign one.
        to = PlanState.PROMOTING if plan.armed_since else PlanState.HOLDING
        for stage in plan.stages.filter(state=StageState.HALTED):
            began = stage.waves.exists() and not stage.must_be_approved_again
            back_to = StageState.PROMOTING if began else StageState.OPENING
            stage.move(back_to, now=now, actor=actor.get_username(), reason=reason)
            rejected = stage.approvals.standing().filter(is_rejection=True)
            rejected.update(void_at=now, void_reason="The plan was resumed and needs a new approval.")
        plan.move(to, now=now, actor=actor.get_username(), reason=reason)


def complete(
    plan: Plan,
    *,
    actor: User,
    reason: str,
    key: str = "",
    expected_state: str = "",
    seen: str | None = None,
    now: datetime,
) -> None:
    """Completes the plan without its failed or held nodes; the gates still evaluate the others.

    Held nodes stay held: released, the operator would change them unwatched. `seen` is the `Completion.seen` of what
    was shown; None accepts any.

    :raises OutOfDate: when it would leave out other nodes now
    :raises Refusal: when a stage is still to come, a node is in progress, or nothing would be left out
    """

    def act(plan: Plan) -> dict[str, Any]:
        found = completion_of(plan)
        if found.why_not or found.stage is None:
            raise Refusal(found.why_not)
        if seen is not None and seen != found.seen:
            raise OutOfDate(f"The excluded nodes have changed since you read the plan. {found.says}")
        who, said = actor.get_username(), f"The plan is completed without this node. {reason}"
        found.stage.plan = plan
        left_out = list(found.stage.targets.filter(state__in=LEFT_OUT))
        move_targets(left_out, TargetState.EXCLUDED, now=now, actor=who, reason=said)
        Hold.objects.filter(plan=plan, node_name__in=found.held).update(is_wanted=True, wanted_since=now)
        if found.is_empty:
            found.stage.move(StageState.ABANDONED, now=now, actor=who, reason=said)
        _take_up(plan, actor=actor, reason=reason, now=now)
        return {"failed": list(found.failed), "held": list(found.held)}

    carry_out_once(
        plan, Verb.COMPLETE, act, actor=actor, reason=reason, key=key, expected_state=expected_state, now=now,
        also={"seen": seen},
    )  # fmt: skip


def roll_back(plan: Plan, *, actor: User, reason: str, key: str = "", expected_state: str = "", now: datetime) -> None:
    """Restores the old version and returns changed nodes to it, in waves. One operator may; no gate forbids it.

    :raises Refusal: when nothing was written yet
    """

    def act(plan: Plan) -> None:
        _close_stages(plan, actor=actor, reason=reason, now=now)
        _end_pause(plan, actor=actor, now=now)
        plan.move(PlanState.ROLLING_BACK, now=now, actor=actor.get_username(), reason=reason)

    carry_out_once(
        plan, Verb.ROLLBACK, act, actor=actor, reason=reason, key=key, expected_state=expected_state, now=now
    )


def abort(plan: Plan, *, actor: User, reason: str, key: str = "", expected_state: str = "", now: datetime) -> None:
    """Aborts the plan: the old version is restored, unchanged nodes are released, changed ones stay held.

    :raises Refusal: when the plan has ended
    """

    def act(plan: Plan) -> None:
        _close_stages(plan, actor=actor, reason=reason, now=now)
        for stage in plan.stages.filter(kind=StageKind.ROLLBACK, state__in=OPEN):
            stage.move(StageState.ABANDONED, now=now, actor=actor.get_username(), reason=reason)
        _end_pause(plan, actor=actor, now=now)
        plan.move(PlanState.ABORTING, now=now, actor=actor.get_username(), reason=reason)

    carry_out_once(plan, Verb.ABORT, act, actor=actor, reason=reason, key=key, expected_state=expected_state, now=now)


def exclude(target: Target, *, actor: User, reason: str, now: datetime) -> None:
    """Excludes a node from its stage. It stays held; a failed one stays as it is; a removed one counts as failed.

    :raises Refusal: when it is released and present, is the last of a stage that others rest on, or the plan has ended
    """
    plan = target.stage.plan
    with transaction.atomic():
        target.stage.plan = Plan.objects.select_for_update(no_key=True).get(pk=plan.pk)
        target.refresh_from_db(fields=["state", "retried_at"])
        is_gone = not Node.objects.filter(cluster=plan.cluster_id, uid=target.node_uid).exists()
        if refusal := _why_not_taken_out(target, is_gone=is_gone):
            raise Refusal(refusal)
        was_held, was_lost = target.state == TargetState.HELD, is_gone and _is_lost(target)
        target.move(TargetState.EXCLUDED, now=now, actor=actor.get_username(), reason=reason)
        if was_lost:
            Target.objects.filter(pk=target.pk).update(is_lost=True)
        if was_held:  # one that was released and failed would be taken for an escape
            Hold.objects.filter(plan=plan, node_uid=target.node_uid).update(is_wanted=True, wanted_since=now)
        Command.objects.create(plan=plan, verb=Verb.EXCLUDE, actor=actor.get_username(), at=now, reason=reason)
        plan.say(f"{actor.get_username()} excluded {target.node_name}. The other nodes are checked.")
        AuditEntry.record(
            plan.mark,
            verb="exclude",
            actor=actor.get_username(),
            reason=reason,
            evidence={"node": target.node_name, "stage": target.stage.name},
            now=now,
        )
    plan.wake(now=now)


def _is_lost(target: Target) -> bool:
    """Returns whether the next round would find the target lost; an earlier failure is a person's to exclude."""
    stage, state = target.stage, TargetState(target.state)
    if state is TargetState.FAILED:
        return False
    is_retried = target.retried_at is not None
    return is_lost(state, is_retried=is_retried, stage=StageState(stage.state), is_rollback=stage.is_rollback)


def _why_not_taken_out(target: Target, *, is_gone: bool) -> str:
    plan, name = target.stage.plan, target.node_name
    if plan.is_final:
        return f"The plan is {plan.state}: no node can be excluded."
    if target.state == TargetState.EXCLUDED:
        return f"{name} is already excluded."
    if is_gone:
        return ""
    if target.state in {*IN_FLIGHT, TargetState.CHANGED}:
        return f"{name} is {target.state}. Only a node that failed or left the cluster can be excluded."
    if _is_last_of_its_stage(target) and (later := _dependent_stage(target.stage)):
        return (
            f"{name} is the last node of {target.stage.name}. Without it there is no evidence for {later.name}. "
            "Repair the node and try it again, or roll back."
        )
    return ""


def _is_last_of_its_stage(target: Target) -> bool:
    return not target.stage.targets.exclude(pk=target.pk).exclude(state=TargetState.EXCLUDED).exists()


def _dependent_stage(stage: Stage) -> Stage | None:
    """Returns the stage that rests on this one; None if none does, or the plan goes back."""
    if stage.is_rollback:
        return None
    over = (StageState.PASSED, StageState.ABANDONED)
    return stage.plan.stages.forward().filter(index__gt=stage.index).exclude(state__in=over).first()


def carry_out_once(
    plan: Plan,
    verb: Verb,
    act: Callable[[Plan], dict[str, Any] | None],
    *,
    actor: User,
    reason: str,
    key: str,
    expected_state: str,
    now: datetime,
    also: Mapping[str, Any] | None = None,
) -> None:
    """Carries a command out once, while the engine may change the plan at the same time.

    The caller's view is compared with the plan as it is. If a round moves a row in between, it reads again and retries.
    """
    body = {"reason": reason, "expected_state": expected_state, **(also or {})}
    asked = IdempotencyKey.of(key, person=actor.get_username(), verb=verb, body=body)
    if verb not in STOPS:
        record_stops(plan, now=now)
    for attempt in range(TRIES):
        try:
            with transaction.atomic():
                # A round locks the plan's row before its stages. The reverse order here would deadlock. Rows that were
                # read before the lock may have changed.
                plan.refresh_from_db(from_queryset=Plan.objects.select_for_update(no_key=True))
                if is_carried_out(plan, asked):
                    return
                _check_request(plan, verb, expected_state=expected_state)
                found = act(plan) or {}
                _write_down(plan, asked, found, reason=reason, now=now)
            break
        except (LostRace, IntegrityError):
            if attempt == TRIES - 1:
                raise
        except Refusal:
            # The same command was sent twice at once: the first one does not refuse the second.
            if not is_carried_out(plan, asked):
                raise
            return
    plan.wake(now=now)


def _check_request(plan: Plan, verb: Verb, *, expected_state: str) -> None:
    if expected_state and plan.state != expected_state:
        raise OutOfDate(f"The plan is {plan.state} now. It was {expected_state} when you read it.")
    is_paused, is_written = plan.commands.in_force().exists(), plan.write_intended_at is not None
    if sentence := why_not_now(verb, PlanState(plan.state), is_written=is_written, is_paused=is_paused):
        raise Refusal(sentence)


def is_carried_out(plan: Plan, asked: IdempotencyKey) -> bool:
    """Returns whether this very command was given already and still holds.

    :raises Refusal: when it was undone, or its key belongs to another command
    """
    return is_done(asked, _earlier(plan, asked), refusal=Refusal)


def _earlier(plan: Plan, asked: IdempotencyKey) -> EarlierCommand | None:
    """Returns the earlier command with this person's key; None without a key or an earlier one."""
    same = plan.commands.filter(actor=asked.person, key=asked.key).select_related("plan")
    if not asked.key or (command := same.first()) is None:
        return None
    later = plan.commands.filter(pk__gt=command.pk)
    holds = is_in_effect(command.verb, PlanState(command.plan.state), later=set(later.values_list("verb", flat=True)))
    return EarlierCommand(
        command.idempotency_key, command.at, holds and command.ended_at is None, lambda: _now_is(command)
    )


def _now_is(command: Command) -> str:
    """Returns the state of the plan since the command, and who changed it."""
    plan = command.plan
    is_now = f"The plan is {plan.state.replace('-', ' ')}"
    if pause := plan.commands.in_force().first():
        return f"{is_now} and paused: {with_period(pause.sentence)}"
    later = plan.commands.filter(pk__gt=command.pk, verb__in=VERBS).first()
    if later and later.at >= plan.state_since:  # else the engine has moved it since
        return f"{is_now}: {later.actor} {VERBS[later.verb].did} at {to_the_second(later.at)}."
    return f"{is_now}: {with_period(plan.reason)}" if plan.reason else f"{is_now}."


def _write_down(plan: Plan, asked: IdempotencyKey, found: dict[str, Any], *, reason: str, now: datetime) -> None:
    who, verb = asked.person, Verb(asked.verb)
    command = Command.objects.create(
        plan=plan, verb=verb, actor=who, at=now, reason=reason, key=asked.key, body_digest=asked.body
    )
    evidence = {"state": plan.state, "waiting_for": plan.waiting_for, **found}
    plan.say(command.sentence if verb == Verb.PAUSE else SAYS[verb])
    AuditEntry.record(plan.mark, verb=verb, actor=who, reason=reason, evidence=evidence, now=now)


def _end_pause(plan: Plan, *, actor: User, now: datetime) -> None:
    plan.commands.in_force().update(ended_at=now, ended_by=actor.get_username())


def _close_stages(plan: Plan, *, actor: User, reason: str, now: datetime) -> None:
    final = {StageState.PASSED, StageState.ABANDONED}
    for stage in Stage.objects.filter(plan=plan).forward().exclude(state__in=final):
        stage.move(StageState.ABANDONED, now=now, actor=actor.get_username(), reason=reason)
