"""A plan of which nothing has moved for long. No wait is without an end: past this one a person is asked, by name.

Gates have a patience, and an armed plan a limit. What else a plan waits for (a rollback for the operator, a person for
a colleague, a pause for whoever made it) may last for ever, and says so to nobody who does not open its page.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db.models import Max, Q, QuerySet

from fleet.models import Cluster
from health.judging.sources import FindingSource
from health.rules.base import Severity, Wrong
from rollouts.gates.approval import ApprovalGate
from rollouts.gates.base import Answer
from rollouts.gates.window import Window
from rollouts.hooks.findings import page_of_plan
from rollouts.lifecycle import PlanState, StageState
from rollouts.models import GateAnswer, Plan, StageKind, Target
from rollouts.reads.on_page import PlanStanding, restraint_on, standings_of
from rollouts.reads.restraints import GOES_BACK
from wording.durations import spell
from wording.instants import to_the_minute

OF_PEOPLE = timedelta(days=1)  # an approval, a pause, a freeze: whoever is asked has slept since
# Where only the operator, or we, have something to do and no freeze forbids it: as long as the plan lets a gate wait.
OF_MACHINES = frozenset({PlanState.HOLDING, PlanState.ROLLING_BACK, PlanState.ABORTING})


def still_plans(cluster: Cluster, *, now: datetime) -> Iterator[tuple[str, Wrong]]:
    """Two queries, and a dozen for each plan that is under way. One that is halted is a finding of its own."""
    plans = list(Plan.objects.under_way().filter(cluster=cluster).exclude(state=PlanState.HALTED).order_by("pk"))
    for standing in standings_of(plans, now=now):
        plan, since, patience = standing.plan, _moved_at(standing.plan), _patience(standing, now=now)
        if patience is None or now - since <= patience:
            continue
        yield (
            f"plan {plan.pk}",
            Wrong(
                Severity.WARNING,
                f"Nothing of plan #{plan.pk} “{plan.title}” has moved since {to_the_minute(since)}, for more than "
                f"{spell(patience)}. {standing.why}",
                f"Open the plan and end the wait, or give the plan up. {plan.started_by or plan.author} started it.",
                {"plan": plan.pk, "state": plan.state, "since": since.isoformat()},
                why=f"{plan.state} {since.isoformat()}",
            ),
        )


def _moved_at(plan: Plan) -> datetime:
    """When a state of it, of a stage or of a target last changed, a person said something, or a label came or went."""
    held = plan.holds.aggregate(wanted=Max("wanted_since"), placed=Max("placed_at"), freed=Max("freed_at"))
    said = plan.commands.aggregate(at=Max("at"), ended=Max("ended_at"))
    newest = plan.events.aggregate(at=Max("at"))
    return max(at for at in (plan.state_since, *held.values(), *said.values(), *newest.values()) if at)


def _patience(standing: PlanStanding, *, now: datetime) -> timedelta | None:
    """None: it ends by itself, and the plan says when."""
    plan = standing.plan
    waits = _waits(plan)
    if standing.pause or any(row.gate == ApprovalGate.key for row in waits):
        return OF_PEOPLE
    if _soaks(plan):
        return None
    restraint = restraint_on(plan, _letting_go(plan), now=now)
    comes = any(row.comes_by_itself for row in waits) if restraint is None else restraint.ends_at is not None
    if comes and not standing.unlooked:
        return None
    if restraint or plan.state not in OF_MACHINES:
        return OF_PEOPLE
    return timedelta(seconds=plan.stages.aggregate(most=Max("timeout_s"))["most"])


def _soaks(plan: Plan) -> bool:
    is_promoting = plan.state == PlanState.PROMOTING
    return is_promoting and plan.stages.forward().filter(state=StageState.SOAKING).exists()


def _waits(plan: Plan) -> list[GateAnswer]:
    """Before its next wave, or before the first."""
    if plan.state != PlanState.PROMOTING:
        return []
    opens = Q(stage__state=StageState.OPENING) | Q(stage__state=StageState.PROMOTING, gate=Window.key)
    return list(GateAnswer.objects.filter(opens, stage__plan=plan, is_current=True, answer=Answer.WAIT))


def _letting_go(plan: Plan) -> QuerySet[Target]:
    """The targets of the stage that is at that: while a plan goes back, of the rollback stage alone."""
    found = Target.objects.filter(stage__plan=plan, stage__state=StageState.PROMOTING).only("node_uid", "state")
    return found.filter(stage__kind=StageKind.ROLLBACK) if plan.state in GOES_BACK else found.forward()


STILL = FindingSource(
    "plan-still",
    "Plan stands still",
    timedelta(0),
    still_plans,
    "Nothing of a plan has moved for a day; for as long as it lets a gate wait, where no person has to decide.",
    page_of_plan,
    (
        "Open the plan: it says what it waits for, and since when.",
        "End that wait: approve or reject, resume what is paused, or put right what a gate waits for on its nodes.",
        "Where it should not go on, roll it back or abort it, with a reason.",
    ),
)
