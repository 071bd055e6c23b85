"""Test Jobs added to a stage in progress that nothing has tested: who may, when, and that a race is lost."""

import pytest

from edges.transition_errors import LostRace
from people.models import AuditEntry
from people.models.audit_entry import broken_links
from rollouts.commands.refusals import BadPlan, Refusal
from rollouts.commands.test_jobs import add_test_jobs
from rollouts.gates.base import UNTESTED
from rollouts.models import GateAnswer, Plan, Stage
from rollouts.queries.remedies import remedies
from tests.make import NOON
from tests.rollouts.rows import a_started_plan, answered, in_state, opened

REASON = "The canary is idle."


@pytest.fixture
def stage(cluster, owner, settings) -> Stage:
    settings.TEST_IMAGES = {}
    plan = in_state(a_started_plan(cluster, owner), "promoting")
    settings.TEST_IMAGES = {"vectoradd": "registry.example/vectoradd"}
    stage = opened(plan, 0)
    stage.move("promoting", now=NOON, actor="engine", reason="Released.")
    answered(stage, "workloads_ready", "wait", title="Nothing has tested the driver", cause=UNTESTED)
    return Stage.objects.select_related("plan__cluster").get(pk=stage.pk)


def test_the_stage_gains_a_gate_that_leaves_its_nodes_in_service(stage, owner):
    epoch = stage.plan.epoch

    add_test_jobs(stage, actor=owner, reason=REASON, now=NOON)

    stage.refresh_from_db()
    entry = AuditEntry.objects.filter(subject=stage.plan.mark).last()
    assert stage.gate_options["test_job"] == {"cordon": False}
    assert Plan.objects.get(pk=stage.plan_id).epoch > epoch, "a round that looked before has lost its turn"
    assert (entry.verb, entry.actor, entry.reason) == ("add-test-jobs", owner.username, REASON)
    assert list(broken_links(AuditEntry.objects.filter(subject=stage.plan.mark))) == []


def test_they_are_added_once(stage, owner):
    add_test_jobs(stage, actor=owner, reason=REASON, now=NOON)

    with pytest.raises(Refusal, match="already has test Jobs"):
        add_test_jobs(stage, actor=owner, reason=REASON, now=NOON)


def test_a_reason_is_asked(stage, owner):
    with pytest.raises(BadPlan):
        add_test_jobs(stage, actor=owner, reason=" ", now=NOON)


def test_a_stage_that_has_not_begun_or_has_passed_gains_none(stage, owner):
    Stage.objects.filter(pk=stage.pk).update(state="passed")

    with pytest.raises(Refusal, match="is passed"):
        add_test_jobs(stage, actor=owner, reason=REASON, now=NOON)


def test_without_an_image_the_refusal_names_the_setting(stage, owner, settings):
    settings.TEST_IMAGES = {}

    with pytest.raises(Refusal, match="QUARTERDECK_TEST_JOB_IMAGE"):
        add_test_jobs(stage, actor=owner, reason=REASON, now=NOON)


def test_a_stage_that_moves_in_the_same_moment_wins(stage, owner, monkeypatch):
    def moves_it(moving: Stage) -> str:
        Stage.objects.filter(pk=moving.pk).update(state="halted")
        return ""

    monkeypatch.setattr("rollouts.commands.test_jobs.why_no_test_jobs", moves_it)

    with pytest.raises(LostRace):
        add_test_jobs(stage, actor=owner, reason=REASON, now=NOON)

    assert "test_job" not in Stage.objects.get(pk=stage.pk).gate_options


def test_a_gate_without_proof_names_what_would_prove_it(stage):
    found = remedies(stage, GateAnswer.objects.get(stage=stage, gate="workloads_ready"))

    assert [way.key for way in found] == ["test-job", "tenants", "other-nodes", "override"]
    assert all(len(way.text) <= 90 for way in found)


def test_a_gate_that_waits_for_something_else_has_no_remedy(stage):
    answered(stage, "soak", "wait", title="It soaks", cause="soaks")

    assert remedies(stage, GateAnswer.objects.get(stage=stage, gate="soak")) == []
