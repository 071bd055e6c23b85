"""A gate that has nothing to look at offers what would prove it: on the plan's page and over REST."""

import pytest
from django.urls import resolve

from rollouts.gates.base import UNTESTED
from rollouts.models import Stage
from tests import make
from tests.callers import calling
from tests.pages import Page, page, visiting
from tests.rollouts.rows import answered

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]


@pytest.fixture
def stage():
    stage = make.a_stage_to_approve()
    stage.move("promoting", now=make.NOON, actor="engine", reason="Released.")
    stage.move("soaking", now=make.NOON, actor="engine", reason="All of them changed.")
    options = {key: value for key, value in stage.gate_options.items() if key != "test_job"}
    Stage.objects.filter(pk=stage.pk).update(gate_options=options)
    answered(stage, "workloads_ready", "wait", title="Nothing has tested the driver", cause=UNTESTED)
    return Stage.objects.select_related("plan__cluster").get(pk=stage.pk)


def test_an_operator_adds_test_jobs_from_the_page(stage):
    ada = visiting(make.a_user("ada", role="operator"))
    before = page(ada, f"/plans/{stage.plan_id}")
    assert "Add a test Job" in before.text
    assert "Override the gate" in before.text

    sent = ada.post(f"/stages/{stage.pk}/test-jobs", {"reason": "The canary is idle."}, follow=True)

    assert "Test Jobs were added to Canary." in Page(sent.content.decode()).text
    assert "test_job" in Stage.objects.get(pk=stage.pk).gate_options


def test_rest_lists_the_same_choices_and_takes_the_first(stage):
    ada = calling(make.a_user("ada", role="operator"))
    ways = ada.get(f"/api/v1/stages/{stage.pk}").json()["remedies"]
    assert [way["key"] for way in ways] == ["test-job", "tenants", "other-nodes", "override"]
    assert all(resolve(way["resource"]) for way in ways if way["resource"])

    assert ada.post(ways[0]["resource"], {"reason": "The canary is idle."}, format="json").status_code == 204

    assert ada.get(f"/api/v1/stages/{stage.pk}").json()["remedies"][0]["why_not"] == "Canary already has test Jobs."
    assert ada.post(ways[0]["resource"], {"reason": "Again."}, format="json").status_code == 409
