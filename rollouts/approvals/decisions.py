"""The stages that wait for an approval, and why a person may not give it. Used by pages and REST."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.db.models import Exists, OuterRef, Prefetch, QuerySet

from people.models import User
from people.rights import Permission, people_with_permission, why_not
from rollouts.approvals.approvers import Members, Share, counts_not, gate_of, members_asked_for, missing, shares
from rollouts.approvals.bundles import Bundle
from rollouts.gates.approval import ApprovalGate
from rollouts.lifecycle import PlanState, StageState
from rollouts.models import Approval, Command, Stage
from wording.instants import moment
from wording.numbers import count, either

GATE = ApprovalGate.key


@dataclass(frozen=True)
class Awaited:
    stage: Stage
    needed: int
    missing: int  # approvals still to come; 0: every one is given
    given: list[Approval]  # decisions that stand, a no included
    why_not: str  # why this person may not decide; blank: they may
    counts_not: str  # why an approval of this person would not count; blank: it would count
    shares: list[Share]  # who has decided, and who still can

    void: Approval | None = None  # last void approval of this person for the stage; None: none

    @property
    def is_theirs(self) -> bool:
        return not self.why_not_theirs

    @property
    def why_not_theirs(self) -> str:
        return self.why_not or self.counts_not or self._why_nobodys

    @property
    def _why_nobodys(self) -> str:
        if no := next((each for each in self.given if each.is_rejection), None):
            return f"{no.by} rejected it."
        return "" if self.missing else "All required approvals are given."

    @property
    def approved(self) -> int:
        return self.needed - self.missing

    @property
    def may_decide(self) -> bool:
        return not self.why_not


def waiting_for_approval(stages: QuerySet[Stage]) -> QuerySet[Stage]:
    standing = Prefetch("approvals", Approval.objects.standing(), to_attr="standing")
    paused = Command.objects.in_force().filter(plan=OuterRef("plan"))
    asked = stages.filter(state=StageState.OPENING, plan__state=PlanState.PROMOTING, gate_options__has_key=GATE)
    asked = asked.exclude(Exists(paused))
    return asked.select_related("plan__cluster", "pool").prefetch_related(standing).order_by("state_since", "pk")


def waits_for(user: User) -> list[Awaited]:
    """Returns the stages that wait for approval and that this person sees, the longest waiting first."""
    waiting = awaited(list(waiting_for_approval(Stage.objects.visible_to(user))), user=user)
    ended = decisions_of_person(user).filter(stage__in=[each.stage for each in waiting], void_at__isnull=False)
    void = {each.stage_id: each for each in reversed(ended)} if waiting else {}
    return [replace(each, void=void.get(each.stage.pk)) for each in waiting]


def decisions_of_person(user: User) -> QuerySet[Approval]:
    """Returns this person's decisions on visible plans, the newest first."""
    seen = Stage.objects.visible_to(user)
    return Approval.objects.filter(by=user.get_username(), stage__in=seen).select_related("stage__plan__cluster")


def why_no_decision(stage: Stage) -> str:
    """Returns why nobody can decide on the stage now; empty if somebody can. One query."""
    plan = stage.plan
    if plan.is_final:
        return f"The plan is {plan.state}: it needs no decision any more."
    if plan.state == PlanState.HALTED:
        return "The plan is halted. Resume the plan before you approve."
    if stage.state != StageState.OPENING:
        return f"{stage.name} is {stage.state} and needs no decision now."
    if gate_of(stage) is None:
        return f"{stage.name} does not wait for an approval. To stop the stage, halt or pause the plan."
    if plan.state != PlanState.PROMOTING:
        return f"The plan is {plan.state} and needs no decision now."
    if pause := plan.commands.in_force().first():
        return f"{pause.actor} paused the plan. Resume the plan before you approve."
    return ""


def why_a_reason(stage: Stage, bundle: Bundle, *, now: datetime) -> str:
    answers = bundle.content["answers"]
    if not answers:
        return "no gate has evaluated a changed node"
    wrong = sum(answer != "pass" for answer in answers.values())
    if wrong:
        return f"{count(wrong, 'gate')} {either(wrong, 'does', 'do')} not pass"
    if since := bundle.unasked_since(now=now):
        return f"no gate was evaluated since {moment(since, now=now)}, so their present results are unknown"
    return "the plan was started despite a blocker" if stage.plan.sealed.get("despite") else ""


def awaited(stages: Sequence[Stage], *, user: User) -> list[Awaited]:
    """Returns the stages from one person's view. Two queries per cluster, and two for groups.

    Load the stages with `waiting_for_approval`.
    """
    clusters = {stage.plan.cluster_id: stage.plan.cluster for stage in stages}
    refusals = {
        key: why_not(user, Permission.APPROVE, cluster_id=key, where=f"cluster {cluster.name}")
        for key, cluster in clusters.items()
    }
    may = {key: people_with_permission(Permission.APPROVE, cluster_id=key) for key in clusters}
    inside = members_asked_for(stages)
    return [_awaited(each, user, refusals[key := each.plan.cluster_id], may[key], inside) for each in stages]


def _awaited(stage: Stage, user: User, refusal: str, may: set[str], inside: Members) -> Awaited:
    given: list[Approval] = stage.standing  # type: ignore[attr-defined]
    gate = gate_of(stage) or ApprovalGate()  # the caller loads only stages with the gate
    why_not = refusal or _why_not_theirs(stage, user, given)
    counts = "" if why_not else counts_not(gate, user.get_username(), given, inside)
    those = shares(stage, given, may=may, inside=inside)
    return Awaited(stage, gate.people, missing(gate, given, inside), given, why_not, counts, those)


def _why_not_theirs(stage: Stage, user: User, given: Sequence[Approval]) -> str:
    who = user.get_username()
    if who in stage.plan.proposers:
        return "You wrote, changed or started this plan. Somebody else has to decide."
    return "You have already decided on this stage." if any(approval.by == who for approval in given) else ""
