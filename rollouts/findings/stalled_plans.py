"""Plans without progress for long. No wait is endless: after a limit a person is asked.

Gates have a timeout and an armed plan has a limit. Other waits (a rollback for the operator, an approval, a pause)
could last for ever unnoticed.
"""

from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db.models import Max, Q, QuerySet

from fleet.models import Cluster
from health.evaluation.finding_sources import FindingSource
from health.rules.base import Problem, Severity
from rollouts.findings.plan_findings import page_of_plan
from rollouts.gates.approval import ApprovalGate
from rollouts.gates.base import BOUND, Answer
from rollouts.gates.window import Window
from rollouts.lifecycle import PlanState, StageState
from rollouts.models import GateAnswer, Plan, StageKind, Target
from rollouts.models.gate_answer import BLIND
from rollouts.queries.plan_view import (
    PlanStanding,
    is_unlooked,
    restraint_on,
    standings_of,
)
from rollouts.queries.restraints import GOES_BACK
from wording.durations import spell
from wording.reports import EvidenceItem, fit, instant

# for an approval, a pause or a freeze: the person may have been away for the night
OF_PEOPLE = timedelta(days=1)
# Only the operator or Quarterdeck can continue these, and no freeze forbids it: the limit is the wait timeout of gates.
OF_MACHINES = frozenset({PlanState.HOLDING, PlanState.ROLLING_BACK, PlanState.ABORTING})


def unlooked_plans(cluster: Cluster, *, now: datetime) -> Iterator[tuple[str, Problem]]:
    """Yields plans that are due and whose rounds do not begin. One query.

    The due time is by the clock of the last worker. The subject therefore names the round: the finding opens once that
    has been unchanged long enough by the evaluating clock.
    """
    for plan in Plan.objects.under_way().filter(cluster=cluster).order_by("pk"):
        ahead = plan.looked_at - now if plan.looked_at and plan.looked_at - now > BLIND else None
        if ahead is None and not is_unlooked(plan, now=now):
            continue
        yield (
            f"plan {plan.pk} round {plan.epoch}",
            Problem(
                severity=Severity.CRITICAL,
                title=fit("No worker runs plan #{} “{}”", plan.pk, plan.title),
                summary="No node is released or held. No gate is evaluated. No halt takes effect.",
                evidence=(
                    EvidenceItem("State", plan.state),
                    *((instant("Last round", plan.looked_at),) if plan.looked_at else ()),
                    EvidenceItem("Rounds", plan.epoch),
                    *((EvidenceItem("Clock ahead", int(ahead.total_seconds()), "s"),) if ahead else ()),
                ),
                facts={"plan": plan.pk, "state": plan.state, "round": plan.epoch},
                identity=plan.state,
            ),
        )


def still_plans(cluster: Cluster, *, now: datetime) -> Iterator[tuple[str, Problem]]:
    """Yields stalled plans. Two queries, and a dozen per plan in progress. Halted plans have their own finding."""
    plans = list(Plan.objects.under_way().filter(cluster=cluster).exclude(state=PlanState.HALTED).order_by("pk"))
    for standing in standings_of(plans, now=now):
        plan, wait = standing.plan, _wait_of(standing, now=now)
        if standing.missed_round_text or wait is None or now - wait.since <= wait.timeout:
            continue
        yield (
            f"plan {plan.pk}",
            Problem(
                severity=Severity.WARNING,
                title=fit("Plan #{} “{}” is stalled", plan.pk, plan.title),
                summary=f"{wait.lacks} for more than {spell(wait.timeout)}.",
                evidence=(
                    instant("Since", wait.since),
                    EvidenceItem("State", plan.state),
                    *((EvidenceItem("Waits for", standing.why),) if standing.why else ()),
                    EvidenceItem("Started by", plan.started_by or plan.author),
                ),
                facts={"plan": plan.pk, "state": plan.state, "since": wait.since.isoformat()},
                identity=f"{plan.state} {wait.since.isoformat()}",
            ),
        )


class Wait(NamedTuple):
    since: datetime
    timeout: timedelta
    lacks: str = "No node, gate or stage has changed"


def _wait_of(standing: PlanStanding, *, now: datetime) -> Wait | None:
    """Returns the wait of the plan; None if it ends by itself at a stated time."""
    plan = standing.plan
    if _soaks(plan) and not standing.pause:
        return Wait(_evaluated_at(plan), _longest_machine_wait(plan), "No gate has been evaluated")
    wait_timeout = _wait_timeout(standing, now=now)
    return None if wait_timeout is None else Wait(_moved_at(plan), wait_timeout)


def _moved_at(plan: Plan) -> datetime:
    held = plan.holds.aggregate(wanted=Max("wanted_since"), placed=Max("placed_at"), freed=Max("freed_at"))
    said = plan.commands.aggregate(at=Max("at"), ended=Max("ended_at"))
    newest = plan.events.aggregate(at=Max("at"))
    return max(at for at in (plan.state_since, *held.values(), *said.values(), *newest.values()) if at)


def _wait_timeout(standing: PlanStanding, *, now: datetime) -> timedelta | None:
    """Returns how long the wait may last; None if it ends by itself."""
    plan = standing.plan
    waits = _waits(plan)
    if standing.pause or any(row.gate == ApprovalGate.key for row in waits):
        return OF_PEOPLE
    restraint = restraint_on(plan, _letting_go(plan, waits), now=now)
    comes = any(row.comes_by_itself for row in waits) if restraint is None else restraint.ends_at is not None
    if comes:
        return None
    if restraint or plan.state not in OF_MACHINES:
        return OF_PEOPLE
    return _longest_machine_wait(plan)


def _longest_machine_wait(plan: Plan) -> timedelta:
    return timedelta(seconds=plan.stages.aggregate(most=Max("timeout_s"))["most"])


def _evaluated_at(plan: Plan) -> datetime:
    """Returns when a gate was last evaluated; without a reachable cluster none is."""
    asked = GateAnswer.objects.filter(stage__plan=plan, is_current=True).aggregate(at=Max("at"))["at"]
    return max(_moved_at(plan), asked) if asked else _moved_at(plan)


def _soaks(plan: Plan) -> bool:
    is_promoting = plan.state == PlanState.PROMOTING
    return is_promoting and plan.stages.forward().filter(state=StageState.SOAKING).exists()


def _waits(plan: Plan) -> list[GateAnswer]:
    if plan.state != PlanState.PROMOTING:
        return []
    opens = Q(stage__state=StageState.OPENING) | Q(stage__state=StageState.PROMOTING, gate=Window.key)
    return list(GateAnswer.objects.filter(opens, stage__plan=plan, is_current=True, answer=Answer.WAIT))


def _letting_go(plan: Plan, waits: Collection[GateAnswer]) -> QuerySet[Target]:
    """Returns the targets of the stage that releases nodes; on the way back, of the rollback stage only.

    A stage that waits for a freeze or window is included.
    """
    is_bound = any(row.cause == BOUND and not row.is_advisory for row in waits)
    states = {StageState.PROMOTING, *([StageState.OPENING] if is_bound else [])}
    found = Target.objects.filter(stage__plan=plan, stage__state__in=states).only("node_uid", "state")
    return found.filter(stage__kind=StageKind.ROLLBACK) if plan.state in GOES_BACK else found.forward()


STILL = FindingSource(
    "plan-still",
    "Plan stalled",
    timedelta(0),
    still_plans,
    "A plan has not progressed for a day, or for its gate timeout where no person has to decide.",
    page_of_plan,
    (
        "Open the plan. It shows what it waits for, and since when.",
        "End the wait: approve or reject, resume the plan, or repair what a gate waits for on its nodes.",
        "If the plan should not continue, roll it back or abort it with a reason.",
    ),
)
UNLOOKED = FindingSource(
    "plan-unlooked",
    "No worker looks at a plan",
    BLIND,
    unlooked_plans,
    "A plan is due, but no worker runs it. No node is released or held. No gate is evaluated. No halt takes effect.",
    page_of_plan,
    (
        "Check whether a worker of the queue rollouts runs, and read its log. Start one if none runs.",
        "Check whether Redis answers. Without it no message and no sweep reaches a worker.",
        "If no worker can start soon and nodes must not begin, hold them by hand (docs/takeover.md).",
    ),
)
