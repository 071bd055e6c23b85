"""Which stages wait for somebody's approval, and who may not give it. For pages and REST alike."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Exists, OuterRef, Prefetch, QuerySet

from people.models import User
from people.rights import Permission, why_not
from rollouts.gates.options import read_gates
from rollouts.lifecycle import PlanState, StageState
from rollouts.models import Approval, Command, Stage
from wording.numbers import are, count

GATE = "approval"


@dataclass(frozen=True)
class Awaited:
    """A stage that waits, as one person sees it."""

    stage: Stage
    needed: int
    given: list[Approval]
    why_not: str  # why this person may not decide; blank: they may

    @property
    def may_decide(self) -> bool:
        return not self.why_not


def waiting_for_approval(stages: QuerySet[Stage]) -> QuerySet[Stage]:
    standing = Prefetch("approvals", Approval.objects.standing(), to_attr="standing")
    paused = Command.objects.in_force().filter(plan=OuterRef("plan"))
    asked = stages.filter(state=StageState.OPENING, plan__state=PlanState.PROMOTING, gate_options__has_key=GATE)
    asked = asked.exclude(Exists(paused))
    return asked.select_related("plan__cluster", "pool").prefetch_related(standing).order_by("state_since", "pk")


def why_closed(stage: Stage) -> str:
    """Why nobody can decide on it now. Blank: it waits for somebody. One query."""
    plan = stage.plan
    if plan.is_final:
        return f"The plan is {plan.state}: nothing is decided on it any more."
    if plan.state == PlanState.HALTED:
        return "The plan is halted: nothing is approved until somebody has resumed it."
    if stage.state != StageState.OPENING:
        return f"{stage.name} is {stage.state}: there is nothing to decide now."
    if plan.state != PlanState.PROMOTING:
        return f"The plan is {plan.state}: there is nothing to decide now."
    if pause := plan.commands.in_force().first():
        return f"{pause.actor} paused the plan: nothing is approved until somebody has resumed it."
    return ""


def why_a_reason(stage: Stage, answers: Mapping[str, str]) -> str:
    """Why an approval of this needs a reason. Blank: there are answers, and every one is green."""
    if not answers:
        return "no gate has judged anything yet"
    wrong = sum(answer != "pass" for answer in answers.values())
    if wrong:
        return f"{count(wrong, 'answer')} {are(wrong)} not green"
    return "the plan was started despite a blocker" if stage.plan.sealed.get("despite") else ""


def awaited(stages: Sequence[Stage], *, user: User) -> list[Awaited]:
    """Load them with `waiting_for_approval`. One query a cluster that has one."""
    refusals: dict[int, str] = {}
    for stage in stages:
        cluster = stage.plan.cluster
        if cluster.pk not in refusals:
            refusals[cluster.pk] = why_not(
                user, Permission.APPROVE, cluster_id=cluster.pk, where=f"cluster {cluster.name}"
            )
    return [_awaited(stage, user, refusals[stage.plan.cluster_id]) for stage in stages]


def _awaited(stage: Stage, user: User, refusal: str) -> Awaited:
    given: list[Approval] = stage.standing  # type: ignore[attr-defined]
    (gate,) = read_gates({GATE: stage.gate_options[GATE]})
    return Awaited(stage, gate.needed, given, refusal or _why_not_theirs(stage, user, given))  # type: ignore[attr-defined]


def _why_not_theirs(stage: Stage, user: User, given: Sequence[Approval]) -> str:
    who = user.get_username()
    if who in {stage.plan.author, stage.plan.last_editor}:
        return "You wrote or changed this plan. Somebody else has to decide."
    return "You have decided on this stage already." if any(approval.by == who for approval in given) else ""
