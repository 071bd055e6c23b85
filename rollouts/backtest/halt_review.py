"""The gate that a halted plan lacked, written once into its history after each halt."""

from datetime import datetime

from rollouts.backtest.review import PlanReview, review_plan
from rollouts.commands.added_gates import usual_options
from rollouts.lifecycle import PlanState
from rollouts.models import Plan
from rollouts.models.plan_event import MISSED_GATE
from rollouts.models.transitions import record_event
from wording.instants import to_the_second
from wording.numbers import count


def record_missed_gate(plan_id: int, *, now: datetime) -> None:
    """Reviews a plan whose last halt has no review yet. One query for a plan that is not halted, two after it has."""
    plan = Plan.objects.filter(pk=plan_id, state=PlanState.HALTED).first()
    if plan is None or plan.events.filter(to=MISSED_GATE, at__gte=plan.state_since).exists():
        return
    review = review_plan(plan, usual_options)
    if review.has_releases:
        record_event(
            plan=plan, what="note", was="", to=MISSED_GATE, now=now, actor="engine", reason=sentence_of(review)
        )


def sentence_of(review: PlanReview) -> str:
    first = review.earliest
    if first is None:
        unknown = count(len(review.unknown), "gate")
        return f"No gate would have stopped it earlier on the recorded evidence. {unknown} cannot be evaluated."
    did = f"kept {first.stage.name} from passing" if first.is_wait else f"failed in {first.stage.name}"
    return f"{first.gate.title} would have {did} at {to_the_second(first.at)}. {first.sentence}"
