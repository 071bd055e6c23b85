"""Why a plan is not moving is one sentence in every state, and never a blank: silence there would look like health."""

from itertools import product

import pytest

from rollouts.lifecycle import PlanState, StageState
from rollouts.models import Plan, Stage
from rollouts.queries import plan_on_page
from rollouts.steering import freezing
from tests.make import NOON, a_plan, a_window

HELD_BY = ("nothing", "pause", "freeze", "window", "stop", "all of them")


def hold(plan: Plan, by: str) -> None:
    if by in ("pause", "all of them"):
        plan.commands.create(verb="pause", actor="ben", at=NOON, because="Lunch.")
    if by in ("freeze", "all of them"):
        freezing.freeze(freezing.Where(), actor="ada", because="Quarter end.", now=NOON)
    if by in ("window", "all of them"):
        a_window(plan.cluster)
    if by in ("stop", "all of them"):
        freezing.stop(actor="ada", because="Smoke.", now=NOON)


@pytest.mark.django_db
@pytest.mark.parametrize(("state", "by"), list(product(PlanState, HELD_BY)))
def test_every_state_has_a_sentence_whatever_holds_it(state: PlanState, by: str):
    """Also where nothing was ever written down of why."""
    plan = a_plan()
    Plan.objects.filter(pk=plan.pk).update(state=state, because="", waiting_for="")
    Stage.objects.filter(plan=plan, index=0).update(state=StageState.PROMOTING)
    hold(plan, by)

    on_page = plan_on_page(Plan.objects.select_related("cluster").get(pk=plan.pk), now=NOON)

    assert on_page.why.endswith((".", "!", "?"))
    assert on_page.why[0].isupper() or on_page.why.startswith("ben ")
    assert all(on_page.besides)
    if by == "all of them" and state in (PlanState.HOLDING, PlanState.PROMOTING, PlanState.ROLLING_BACK):
        assert on_page.why == "The fleet is stopped by ada: Smoke."


@pytest.mark.django_db
def test_a_plan_outside_of_its_window_says_when_it_opens():
    plan = a_plan()
    Plan.objects.filter(pk=plan.pk).update(state=PlanState.PROMOTING)
    Stage.objects.filter(plan=plan, index=0).update(state=StageState.PROMOTING)
    window = a_window(plan.cluster)

    on_page = plan_on_page(Plan.objects.select_related("cluster").get(pk=plan.pk), now=NOON)

    assert on_page.why == f"The maintenance window of cluster {window.cluster.name} is closed until Sunday 02:00 UTC."
