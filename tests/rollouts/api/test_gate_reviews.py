"""Gates evaluated again over REST, and the draft with the gate that a halted plan lacked."""

import pytest

from rollouts.models import Plan
from tests.callers import calling
from tests.make import a_user
from tests.rollouts.backtest.story import a_halted_plan, an_xid

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]


@pytest.fixture
def ada():
    return calling(a_user("ada", role="operator"))


def test_a_halted_plan_names_the_gate_that_would_have_stopped_it_earlier(ada):
    plan = a_halted_plan()
    an_xid(plan, severity="warning")

    missed = ada.get(f"/api/v1/plans/{plan.pk}").json()["missed_gate"]
    review = ada.get(f"/api/v1/plans/{plan.pk}/gate-review").json()

    assert (missed["gate"], missed["stage"]["name"], missed["answer"]) == ("xid", "Canary", "fail")
    assert (missed["nodes"], missed["good_nodes"], missed["released_after"]) == (["node-0"], ["node-0"], 2)
    assert review["earliest"] == missed
    assert {"gate": "test_job", "missing": ["test Jobs of this kind: none ran"]} in review["unknown"]
    assert "test_job" not in review["passed"]


def test_the_missing_gate_becomes_a_draft_with_it_in_every_stage(ada):
    plan = a_halted_plan()

    reply = ada.post(f"/api/v1/plans/{plan.pk}/gate-additions", {"gate": "xid"}, format="json")

    made = Plan.objects.get(pk=reply.json()["id"])
    assert (reply.status_code, made.state, made.to_version) == (201, "draft", plan.to_version)
    assert [stage.gate_options["xid"] for stage in made.stages.forward()] == [{}, {}]
    assert [stage.name for stage in made.stages.forward()] == ["Canary", "Rest"]


def test_an_option_that_the_gate_lacks_and_a_viewer_are_refused(ada):
    plan = a_halted_plan()
    path, bob = f"/api/v1/plans/{plan.pk}/gate-additions", calling(a_user("bob", role="viewer"))

    assert ada.post(path, {"gate": "xid", "options": {"colour": 1}}, format="json").status_code == 400
    assert bob.post(path, {"gate": "xid"}, format="json").status_code == 403


def test_one_gate_is_tried_on_earlier_plans_of_the_cluster_together(ada):
    plan, other = a_halted_plan(), a_halted_plan()
    an_xid(other, severity="warning")
    Plan.objects.filter(pk=plan.pk).update(cluster=other.cluster)
    path = f"/api/v1/plans/{plan.pk}/gate-review"

    found = ada.get(path, {"gate": "xid", "past": 5}).json()

    (past,) = found["past"]
    assert (past["plan"], past["is_halt"], found["past_left"]) == (other.pk, True, [])
    assert ada.get(path, {"gate": "xid"}).json()["past"] == []
    assert ada.get(path, {"gate": "xid", "past": 99}).status_code == 400
