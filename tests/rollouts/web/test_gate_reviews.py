"""The panel of a halted plan with the gates that it lacked, and its button."""

import pytest

from rollouts.backtest import review
from rollouts.models import Plan
from tests.make import a_user
from tests.pages import page, visiting
from tests.rollouts.backtest.story import a_halted_plan, an_xid

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]


def test_the_panel_names_the_gate_its_stage_and_what_is_not_recorded():
    plan, ada = a_halted_plan(), visiting(a_user("ada", role="operator"))
    an_xid(plan, severity="warning")

    said = page(ada, f"/parts/plans/{plan.pk}/gate-review").text

    assert "Xids would have halted the plan in Canary at" in said
    assert "2 nodes were released after that." in said
    assert "gates not evaluated: evidence is not recorded" in said


def test_a_press_makes_a_draft_with_the_gate():
    plan, ada = a_halted_plan(), visiting(a_user("ada", role="operator"))

    ada.post(f"/plans/{plan.pk}/gates", {"gate": "exposure"})

    made = Plan.objects.exclude(pk=plan.pk).get()
    assert all("exposure" in stage.gate_options for stage in made.stages.forward())


def test_other_options_of_a_gate_are_tried_on_the_plan():
    plan, ada = a_halted_plan(), visiting(a_user("ada", role="operator"))
    address = f"/parts/plans/{plan.pk}/gate-review?gate=driver_version&run=1&option-timeout_s="

    assert "Did not fail by the end: node-0." in page(ada, f"{address}120").text
    assert "Driver version with these options stops no stage." in page(ada, f"{address}3600").text
    assert "“soon” is not a number." in page(ada, f"{address}soon").text


def test_a_gate_is_tried_on_earlier_plans_too(monkeypatch: pytest.MonkeyPatch):
    plan, ada = a_halted_plan(), visiting(a_user("ada", role="operator"))
    address = f"/parts/plans/{plan.pk}/gate-review?gate=driver_version&run=1&option-timeout_s=120&past=on"
    assert "This cluster has no earlier plan that ended." in page(ada, address).text

    other = a_halted_plan()
    Plan.objects.filter(pk=plan.pk).update(cluster=other.cluster)

    assert "fails in Canary at" in page(ada, address).text

    monkeypatch.setattr(review, "LONGEST_PAST_S", 0)
    assert "Not evaluated, since it took too long: " in page(ada, address).text
