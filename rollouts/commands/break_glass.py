"""Break-glass: a person overrides one gate of one stage for a while, until a second person has acknowledged it.

It cannot override what nobody can observe: an unseen node, a stage without nodes, and a colleague's rejection still
count.
"""

from datetime import datetime, timedelta

from django.db import transaction

from people.models import AuditEntry, User
from people.rights import NotAllowed, Permission, scope_of, why_not
from rollouts.commands.refusals import BadPlan, NotYours, Refusal
from rollouts.gates import GATES
from rollouts.gates.approval import ApprovalGate
from rollouts.gates.base import NEVER_OVERRIDDEN, Answer
from rollouts.lifecycle import PlanState, StageState
from rollouts.models import GateAnswer, GateOverride, Plan, Stage
from rollouts.models.transitions import record_event
from wording.durations import spell
from wording.instants import moment

AS_USUAL, LEAST, MOST = timedelta(hours=4), timedelta(minutes=1), timedelta(hours=24)
STAGES = frozenset({StageState.OPENING, StageState.PROMOTING, StageState.SOAKING, StageState.HALTED, StageState.PASSED})


def override_gate(
    stage: Stage, gate: str, *, actor: User, reason: str, confirm: str, valid_for: timedelta = AS_USUAL, now: datetime
) -> GateOverride:
    """Overrides the gate. `confirm` is the plan's title, typed.

    :raises BadPlan: with the field that is wrong
    :raises NotAllowed: without the right; for an approval an admin's
    :raises Refusal: when the gate blocks nothing or cannot be overridden
    """
    plan, who = stage.plan, actor.get_username()
    if refusal := why_not_theirs(stage, gate, actor):
        raise NotAllowed(refusal)
    _check(plan, reason, confirm, valid_for)
    with transaction.atomic():
        stage.plan = Plan.objects.select_for_update(no_key=True).get(pk=plan.pk)
        stage.refresh_from_db(fields=["state"])
        answer = GateAnswer.objects.filter(stage=stage, gate=gate, is_current=True).first()
        if refusal := why_not_overridden(stage, gate, answer, now=now):
            raise Refusal(refusal)
        until = now + valid_for
        override = GateOverride.objects.create(
            stage=stage, gate=gate, said=answer.sentence if answer else "", by=who, at=now, reason=reason, until=until
        )
        said = f"{GATES[gate].title}: {reason}"
        record_event(plan=plan, stage=stage, what="command", was="", to="break-glass", now=now, actor=who, reason=said)
        AuditEntry.record(
            plan.mark, verb="break-glass", actor=who, reason=reason, evidence=override_evidence(override), now=now
        )
        plan.say(f"{stage.name}: {who} overrode {GATES[gate].title}; every gate is evaluated again.")
    plan.wake(now=now)
    return override


def acknowledge(override: GateOverride, *, actor: User, now: datetime) -> None:
    """Acknowledges an override. It does nothing if somebody else was faster.

    :raises NotYours: for the author of the override
    """
    who, plan = actor.get_username(), override.stage.plan
    if who == override.by:
        raise NotYours("You made this override. A second person must acknowledge it.")
    with transaction.atomic():
        open_ = GateOverride.objects.filter(pk=override.pk, acknowledged_at=None)
        Plan.objects.select_for_update(no_key=True).get(pk=plan.pk)
        if open_.update(acknowledged_by=who, acknowledged_at=now):
            evidence = override_evidence(override)
            AuditEntry.record(plan.mark, verb="acknowledge-override", actor=who, evidence=evidence, now=now)
            said = f"{GATES[override.gate].title}, overridden by {override.by}: acknowledged."
            record_event(
                plan=plan,
                stage=override.stage,
                what="command",
                was="",
                to="acknowledge-override",
                now=now,
                actor=who,
                reason=said,
            )


def override_evidence(override: GateOverride) -> dict[str, str | int]:
    return {
        "stage": override.stage.index,
        "gate": override.gate,
        "said": override.said,
        "until": override.until.isoformat(timespec="microseconds"),
    }


def why_not_theirs(stage: Stage, gate: str, user: User) -> str:
    plan = stage.plan
    needed = Permission.ADMINISTER if gate == ApprovalGate.key else Permission.RUN
    if gate == ApprovalGate.key and user.get_username() in plan.proposers:
        return "You wrote, changed or started this plan: you cannot override its approvals, whatever your role."
    if gate == ApprovalGate.key and user.token is not None:
        return "A token cannot override an approval. A person must sign in for that."
    if scope_of(user, needed).covers_cluster(plan.cluster_id):
        return ""
    where = f"cluster {plan.cluster.name}"
    if needed is Permission.ADMINISTER and not (user.token and needed not in user.token.permissions):
        return f"Only an admin of {where} can override an approval."
    return why_not(user, needed, cluster_id=plan.cluster_id, where=where)


def why_not_overridden(stage: Stage, gate: str, answer: GateAnswer | None, *, now: datetime) -> str:
    """Returns why the gate cannot be overridden now; empty if it can. One query."""
    plan = stage.plan
    named = next((each for each in stage.gates if each.key == gate), None)
    if named is None:
        return f"{stage.name} has no gate “{gate[:63]}”."
    if stage.is_rollback:
        return "In a rollback gates only warn: nothing needs an override."
    if plan.state not in {PlanState.PROMOTING, PlanState.HALTED} or stage.state not in STAGES:
        return f"{stage.name} is {stage.state} in a plan that is {plan.state.replace('-', ' ')}: no gate delays it."
    if named.advisory:
        return f"{named.title} is advisory in {stage.name} and delays nothing."
    if answer is None or answer.answer == Answer.PASS:
        return f"{named.title} {'passes' if answer else 'was not evaluated yet'} and delays nothing."
    if why := NEVER_OVERRIDDEN.get(answer.cause):
        return f"{answer.sentence} {why}"
    if override := GateOverride.objects.in_force(now=now).filter(stage=stage, gate=gate).first():
        return f"{override.by} has already overridden this gate until {moment(override.until, now=now)}."
    return ""


def _check(plan: Plan, reason: str, confirm: str, valid_for: timedelta) -> None:
    problems = []
    if not reason.strip():
        problems.append(("reason", "Give a reason. It is stored and shown permanently."))
    if confirm.strip() != plan.title.strip():
        problems.append(("confirm", f"To confirm, type the plan's title: “{plan.title}”."))
    if not LEAST <= valid_for <= MOST:
        problems.append(("valid_for", f"An override lasts between {spell(LEAST)} and {spell(MOST)}."))
    if problems:
        raise BadPlan(*problems)
