"""What a person tells a plan that is under way. Each is one transaction: the command, the moves, the audit entry.

A halt and a pause have one before it, which is in force from its commit on, whoever has locked the plan.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

import structlog
from django.db import IntegrityError, OperationalError, transaction

from edges.idempotency import CarriedOut, IdempotencyKey, is_done
from edges.locks import wait_for_locks
from edges.transition_errors import LostRace
from fleet.models import Node
from people.models import AuditEntry, User
from rollouts.commands.refusals import OutOfDate, Refusal
from rollouts.lifecycle import IN_FLIGHT, PlanState, StageState, TargetState, is_lost
from rollouts.models import Command, Hold, PendingCommand, Plan, Stage, StageKind, Target, Verb
from rollouts.models.transitions import record_event
from rollouts.queries.completion import LEFT_OUT, completion_of
from rollouts.queries.restraints import ended
from rollouts.verbs import VERBS, is_in_effect, why_not_now
from wording.instants import to_the_second

log = structlog.get_logger()

TRIES = 5  # a round moves a row in milliseconds: losing to it five times running is a bug
SAYS = {  # until the round that the command wakes has looked: what was waited for before is no longer true
    Verb.HALT: "Halting: what was let go and has not begun is held again.",
    Verb.RESUME: "Taking it up again: the cluster is looked at first.",
    Verb.ROLLBACK: "Rolling back: every node is held before the old version is put back.",
    Verb.COMPLETE: "Going on without the nodes that were left out: the cluster is looked at first.",
    Verb.HANDOVER: "Handing over: the cluster is looked at first.",
    Verb.ABORT: "Giving it up: what was let go and has not begun is held again.",
}
FOLLOWS = {  # where another transaction has locked the plan
    Verb.HALT: "Halted: nothing more is released. The plan shows it once a transaction that has it locked ends.",
    Verb.PAUSE: "Paused: nothing more is released. The plan shows it once a transaction that has it locked ends.",
}
OPEN = (StageState.OPENING, StageState.PROMOTING, StageState.SOAKING)


def halt(plan: Plan, *, actor: User, reason: str, key: str = "", expected_state: str = "", now: datetime) -> str:
    """Stop at once. Blank; or that it is in force, and that the plan's own rows follow.

    :raises Refusal: when there is nothing to stop
    """
    told: dict[str, Any] = {
        "actor": actor,
        "reason": reason,
        "key": key,
        "expected_state": expected_state,
        "now": now,
    }
    return _stop_at_once(plan, Verb.HALT, **told)


def pause(plan: Plan, *, actor: User, reason: str, key: str = "", expected_state: str = "", now: datetime) -> str:
    """Let nothing more go, and hold again what has not begun, until somebody resumes. Gates go on being asked.

    Blank; or that it is in force, and that the plan's own rows follow.

    :raises Refusal: when it is paused already, or not under way
    """
    told: dict[str, Any] = {
        "actor": actor,
        "reason": reason,
        "key": key,
        "expected_state": expected_state,
        "now": now,
    }
    return _stop_at_once(plan, Verb.PAUSE, **told)


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
    """Put it in force by a row that waits for no lock; then write it down, for which the plan's row is locked.

    Where that lock is not to be had, the row stays in force until a sweep has written it down.
    """
    who, body = actor.get_username(), {"reason": reason, "expected_state": expected_state}
    named = IdempotencyKey.of(key, person=who, verb=verb, body=body)
    plan.refresh_from_db()
    if is_carried_out(plan, named):
        return ""
    try:
        _refuse_what_has_no_sense(plan, verb, expected_state=expected_state)
    except Refusal:
        if not is_carried_out(plan, named):  # by the same command, in this moment
            raise
        return ""
    asked = PendingCommand.objects.create(plan=plan, verb=verb, actor=who, at=now, key=key, **body)
    try:
        with wait_for_locks():
            record_stop(asked, plan=plan, actor=actor, now=now)
    except (LostRace, OperationalError) as held:
        log.warning("a stop is in force and written down later", plan=plan.mark, verb=verb, reason=str(held))
        return FOLLOWS[verb]
    return ""


def record_stop(asked: PendingCommand, *, plan: Plan, actor: User, now: datetime) -> None:
    """Write a halt or a pause down that is in force already. Once, whoever else is at it, and whatever the plan has
    become since.

    :raises Refusal: when it makes no sense any more; it is in force no more then
    :raises LostRace, OperationalError: when it cannot be written now; it stays in force
    """

    def act(plan: Plan) -> dict[str, Any] | None:
        if not _end(asked):
            raise Refusal("It is written down already.")
        STOPS[asked.verb](plan, actor=asked.actor, reason=asked.reason, now=now)
        return {"in_force_since": asked.at} if asked.at != now else None

    also = {"expected_state": asked.expected_state}
    told: dict[str, Any] = {"reason": asked.reason, "key": asked.key, "expected_state": "", "also": also}
    try:
        tell(plan, Verb(asked.verb), act, actor=actor, now=now, **told)
    except Refusal:
        if _end(asked):
            raise
        return  # written down by a sweep in this moment
    _end(asked)


def record_stops(plan: Plan, *, now: datetime) -> None:
    """Write down what is in force already, before whatever is told the plan after it."""
    for asked in plan.pending.restraining():
        with suppress(Refusal):  # the plan has become something that cannot be stopped: what follows is told as much
            record_stop(asked, plan=plan, actor=User(username=asked.actor), now=now)


def _end(asked: PendingCommand) -> bool:
    """False: somebody else has written it down, and ended it."""
    return bool(PendingCommand.objects.filter(pk=asked.pk).delete()[0])


def resume(plan: Plan, *, actor: User, reason: str, key: str = "", expected_state: str = "", now: datetime) -> None:
    """End a pause, or take up again what was halted. Gates are asked anew: what still fails halts it again.

    :raises Refusal: when it neither is paused nor halted
    """

    def act(plan: Plan) -> None:
        _take_up(plan, actor=actor, reason=reason, now=now)

    tell(plan, Verb.RESUME, act, actor=actor, reason=reason, key=key, expected_state=expected_state, now=now)


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
            rejected.update(void_at=now, void_reason="The plan was resumed: it is asked anew.")
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
    """Leave out what failed or is held in the last stage, and go on with the others: their gates still judge them.

    What is held stays held: freed, the operator would bring it the new version with nobody watching.

    `seen`: the `Completion.hash` of what the person was shown. None: they decide whatever it is.

    :raises OutOfDate: when it would leave out others by now

    :raises Refusal: when a stage is still to come, a node is on its way, or nothing would be left out
    """

    def act(plan: Plan) -> dict[str, Any]:
        found = completion_of(plan)
        if found.why_not or found.stage is None:
            raise Refusal(found.why_not)
        if seen is not None and seen != found.hash:
            raise OutOfDate(f"What it leaves out has changed since you looked. {found.says}")
        who, said = actor.get_username(), f"The plan is completed without it. {reason}"
        for target in found.stage.targets.filter(state__in=LEFT_OUT):
            target.stage.plan = plan
            target.move(TargetState.EXCLUDED, now=now, actor=who, reason=said)
        Hold.objects.filter(plan=plan, node_name__in=found.held).update(is_wanted=True, wanted_since=now)
        if found.is_empty:
            found.stage.move(StageState.ABANDONED, now=now, actor=who, reason=said)
        _take_up(plan, actor=actor, reason=reason, now=now)
        return {"failed": list(found.failed), "held": list(found.held)}

    tell(
        plan, Verb.COMPLETE, act, actor=actor, reason=reason, key=key, expected_state=expected_state, now=now,
        also={"seen": seen},
    )  # fmt: skip


def roll_back(plan: Plan, *, actor: User, reason: str, key: str = "", expected_state: str = "", now: datetime) -> None:
    """Put the old version back and bring every changed node back to it, in waves. One operator may; no gate forbids it.

    :raises Refusal: when nothing was written yet
    """

    def act(plan: Plan) -> None:
        _close_stages(plan, actor=actor, reason=reason, now=now)
        _end_pause(plan, actor=actor, now=now)
        plan.move(PlanState.ROLLING_BACK, now=now, actor=actor.get_username(), reason=reason)

    tell(plan, Verb.ROLLBACK, act, actor=actor, reason=reason, key=key, expected_state=expected_state, now=now)


def abort(plan: Plan, *, actor: User, reason: str, key: str = "", expected_state: str = "", now: datetime) -> None:
    """Give the plan up. The old version is put back and unchanged nodes are let go; changed ones stay, held.

    :raises Refusal: when the plan is over
    """

    def act(plan: Plan) -> None:
        _close_stages(plan, actor=actor, reason=reason, now=now)
        for stage in plan.stages.filter(kind=StageKind.ROLLBACK, state__in=OPEN):
            stage.move(StageState.ABANDONED, now=now, actor=actor.get_username(), reason=reason)
        _end_pause(plan, actor=actor, now=now)
        plan.move(PlanState.ABORTING, now=now, actor=actor.get_username(), reason=reason)

    tell(plan, Verb.ABORT, act, actor=actor, reason=reason, key=key, expected_state=expected_state, now=now)


def exclude(target: Target, *, actor: User, reason: str, now: datetime) -> None:
    """Take a node out of its stage. It stays held; one that failed stays as it is; one that went counts as failed.

    :raises Refusal: when it was let go and is there, is the last of a stage that others rest on, or the plan is over
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
        if was_held:  # one that was let go and failed would be taken for an escape
            Hold.objects.filter(plan=plan, node_uid=target.node_uid).update(is_wanted=True, wanted_since=now)
        Command.objects.create(plan=plan, verb=Verb.EXCLUDE, actor=actor.get_username(), at=now, reason=reason)
        plan.say(f"{target.node_name} was taken out by {actor.get_username()}: the others are looked at.")
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
    """As the next round would find. One that had failed before it went is a person's to give up."""
    stage, state = target.stage, TargetState(target.state)
    if state is TargetState.FAILED:
        return False
    is_retried = target.retried_at is not None
    return is_lost(state, is_retried=is_retried, stage=StageState(stage.state), is_rollback=stage.is_rollback)


def _why_not_taken_out(target: Target, *, is_gone: bool) -> str:
    plan, name = target.stage.plan, target.node_name
    if plan.is_final:
        return f"The plan is {plan.state}: there is nothing to take a node out of."
    if target.state == TargetState.EXCLUDED:
        return f"{name} is taken out already."
    if is_gone:
        return ""
    if target.state in {*IN_FLIGHT, TargetState.CHANGED}:
        return f"{name} is {target.state}: it can be taken out once it is gone, or has failed."
    if _is_last_of_its_stage(target) and (later := _still_to_come(target.stage)):
        return (
            f"{name} is the last node of {target.stage.name}: without it nothing shows whether {later.name} may begin. "
            "Mend it and try it again, or roll back."
        )
    return ""


def _is_last_of_its_stage(target: Target) -> bool:
    return not target.stage.targets.exclude(pk=target.pk).exclude(state=TargetState.EXCLUDED).exists()


def _still_to_come(stage: Stage) -> Stage | None:
    """The stage that rests on what this one shows. None: no other, or it goes back."""
    if stage.is_rollback:
        return None
    over = (StageState.PASSED, StageState.ABANDONED)
    return stage.plan.stages.forward().filter(index__gt=stage.index).exclude(state__in=over).first()


def tell(
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
    """Carry a command out once, whatever the engine does to the plan at the same moment.

    The caller's view is checked against the plan as it is; a round that moves a row between our read and our write
    is no reason to refuse a person, so we read again and try again. `also`: what else the caller asked for.
    """
    body = {"reason": reason, "expected_state": expected_state, **(also or {})}
    asked = IdempotencyKey.of(key, person=actor.get_username(), verb=verb, body=body)
    if verb not in STOPS:
        record_stops(plan, now=now)
    for attempt in range(TRIES):
        try:
            with transaction.atomic():
                # A round has the plan's row before it moves stages: who took them the other way round would wait for
                # it while it waits for him. What is read before the lock may have ended since.
                plan.refresh_from_db(from_queryset=Plan.objects.select_for_update(no_key=True))
                if is_carried_out(plan, asked):
                    return
                _refuse_what_has_no_sense(plan, verb, expected_state=expected_state)
                found = act(plan) or {}
                _write_down(plan, asked, found, reason=reason, now=now)
            break
        except (LostRace, IntegrityError):
            if attempt == TRIES - 1:
                raise
        except Refusal:
            # The same command, sent twice at once: what the first has done is no reason to refuse the second.
            if not is_carried_out(plan, asked):
                raise
            return
    plan.wake(now=now)


def _refuse_what_has_no_sense(plan: Plan, verb: Verb, *, expected_state: str) -> None:
    """Before it is written: a pause that stands is another's."""
    if expected_state and plan.state != expected_state:
        raise OutOfDate(f"The plan is {plan.state}, not {expected_state} as you saw it.")
    is_paused, is_written = plan.commands.in_force().exists(), plan.write_intended_at is not None
    if sentence := why_not_now(verb, PlanState(plan.state), is_written=is_written, is_paused=is_paused):
        raise Refusal(sentence)


def is_carried_out(plan: Plan, asked: IdempotencyKey) -> bool:
    """Whether this very command was given already, and its effect holds.

    :raises Refusal: when its effect was undone, or its key named another command
    """
    return is_done(asked, _earlier(plan, asked), refusal=Refusal)


def _earlier(plan: Plan, asked: IdempotencyKey) -> CarriedOut | None:
    """What this person's key named before, judged by the plan's row as it is now. None: no key, or nothing yet."""
    same = plan.commands.filter(actor=asked.person, key=asked.key).select_related("plan")
    if not asked.key or (command := same.first()) is None:
        return None
    later = plan.commands.filter(pk__gt=command.pk)
    holds = is_in_effect(command.verb, PlanState(command.plan.state), later=set(later.values_list("verb", flat=True)))
    return CarriedOut(command.idempotency_key, command.at, holds and command.ended_at is None, lambda: _now_is(command))


def _now_is(command: Command) -> str:
    """What became of the plan since this command, and by whom."""
    plan = command.plan
    is_now = f"The plan is {plan.state.replace('-', ' ')}"
    if pause := plan.commands.in_force().first():
        return f"{is_now} and paused: {ended(pause.sentence)}"
    later = plan.commands.filter(pk__gt=command.pk, verb__in=VERBS).first()
    if later and later.at >= plan.state_since:  # else the engine has moved it since
        return f"{is_now}: {later.actor} {VERBS[later.verb].did} at {to_the_second(later.at)}."
    return f"{is_now}: {ended(plan.reason)}" if plan.reason else f"{is_now}."


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
