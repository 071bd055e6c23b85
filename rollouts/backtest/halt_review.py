"""The notes of a halted plan: its suspects, and the gate that it lacked."""

from datetime import datetime, timedelta

from django.db.models import Prefetch

from rollouts.backtest.review import PlanReview, review_plan
from rollouts.commands.added_gates import usual_options
from rollouts.lifecycle import PlanState
from rollouts.models import GateAnswer, Plan
from rollouts.models.plan_event import MISSED_GATE, SUSPECTS
from rollouts.models.transitions import record_event
from rollouts.queries.suspects import plan_suspects
from wording.instants import to_the_second
from wording.numbers import count

AGAIN = timedelta(minutes=1)  # a gate that names another node writes no event of its own


def review_halt(plan_id: int, *, now: datetime) -> None:
    """Records suspects and missed gate of a halted plan. One query for a plan that is not halted.

    The gate is recorded once. Suspects are recorded again when they differ, at most once a minute.
    """
    plan = Plan.objects.filter(pk=plan_id, state=PlanState.HALTED).first()
    if plan is not None:
        _record_suspects(plan, now=now)
        _record_missed_gate(plan, now=now)


def _record_suspects(plan: Plan, *, now: datetime) -> None:
    noted = plan.events.filter(to=SUSPECTS, at__gte=plan.state_since).first()
    if noted and now - noted.at < AGAIN:
        return
    current = Prefetch("answers", GateAnswer.objects.filter(is_current=True))
    found = plan_suspects(plan, list(plan.stages.prefetch_related(current, "targets")))
    text = f"{found.title}. {found.summary}" if found else ""
    if text and (noted is None or noted.reason != text):
        record_event(plan=plan, what="note", was="", to=SUSPECTS, now=now, actor="engine", reason=text)


def _record_missed_gate(plan: Plan, *, now: datetime) -> None:
    if plan.events.filter(to=MISSED_GATE, at__gte=plan.state_since).exists():
        return
    review = review_plan(plan, usual_options)
    if review.has_releases:
        reason = sentence_of(review)
        record_event(plan=plan, what="note", was="", to=MISSED_GATE, now=now, actor="engine", reason=reason)


def sentence_of(review: PlanReview) -> str:
    first = review.earliest
    if first is None:
        unknown = count(len(review.unknown), "gate")
        return f"No gate would have stopped it earlier on the recorded evidence. {unknown} cannot be evaluated."
    did = f"kept {first.stage.name} from passing" if first.is_wait else f"failed in {first.stage.name}"
    return f"{first.gate.title} would have {did} at {to_the_second(first.at)}. {first.sentence}"
