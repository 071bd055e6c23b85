"""Each gate is evaluated again on the recorded evidence of a halted plan."""

from datetime import timedelta

import pytest

from rollouts.backtest.review import LONGEST_PAST_S, review_plan, try_gate, try_gate_on_past
from rollouts.commands.added_gates import usual_options
from rollouts.gates.base import PodEvidence, ValidatorEvidence
from rollouts.gates.driver_version import DriverVersion
from rollouts.gates.failure_budget import FailureBudget
from rollouts.gates.validator_passed import ValidatorPassed
from rollouts.models import Plan
from tests.make import NOON, a_node_event
from tests.rollouts.backtest.story import FEW_GATES, PASSED, a_halted_plan, a_look, an_xid

pytestmark = [pytest.mark.django_db]


def test_an_xid_of_an_idle_canary_would_have_halted_the_plan_there():
    plan = a_halted_plan()
    an_xid(plan, severity="warning")

    review = review_plan(plan, usual_options)

    found = review.earliest
    assert (found.gate.key, found.stage.name, found.at) == ("xid", "Canary", NOON + timedelta(minutes=21))
    assert (found.is_wait, list(found.nodes), found.spared) == (False, ["node-0"], 2)
    assert found.sentence.startswith("GPU 3 of node-0: Xid 79.")


def test_gates_that_need_work_on_the_canary_would_have_waited_when_it_passed():
    plan = a_halted_plan()

    review = review_plan(plan, usual_options)

    waits = {one.gate.key: (one.stage.name, one.at, one.is_wait) for one in review.catches}
    assert waits["exposure"] == ("Canary", NOON + PASSED, True)
    assert waits["workloads_ready"] == ("Canary", NOON + PASSED, True)


def test_a_gate_whose_evidence_is_not_recorded_neither_passes_nor_fails():
    review = review_plan(a_halted_plan(), usual_options)

    unknown = {past.gate.key: past.missing for past in review.unknown}
    assert unknown["test_job"] == ("test Jobs of this kind: none ran",)
    assert unknown["validator_passed"] == ("runs of the validator",)
    assert unknown["xid"] == ("runs of the rules and samples of GPUs",)
    assert {"findings", "ecc", "telemetry_fresh", "operands_ready"} <= unknown.keys()
    assert {"allocatable_restored", "mig_state"} == {past.gate.key for past in review.passed}


def test_a_finding_that_the_node_had_before_its_change_is_not_blamed():
    plan = a_halted_plan()
    row = an_xid(plan, minute=1)
    target = plan.stages.first().targets.get()
    target.baseline["findings"] = {f"gpu-xid {row.identity} 79": "critical"}
    target.save(update_fields=["baseline"])

    review = review_plan(plan, usual_options)

    assert not {"xid", "findings"} & {catch.gate.key for catch in review.catches}


def test_a_finding_after_the_halt_stops_nothing():
    plan = a_halted_plan()
    an_xid(plan, minute=70)

    assert not {"xid", "findings"} & {catch.gate.key for catch in review_plan(plan, usual_options).catches}


def test_fewer_gpus_in_the_timeline_would_have_failed_after_the_settle_time():
    plan = a_halted_plan()
    detail = {"column": "gpu_allocatable", "was": 8, "is": 7}
    a_node_event(plan.cluster.nodes.get(name="node-0"), at=NOON + timedelta(minutes=9), detail=detail, kind="capacity")

    review = review_plan(plan, usual_options)

    (found,) = [catch for catch in review.catches if catch.gate.key == "allocatable_restored"]
    assert (found.stage.name, found.at) == ("Canary", NOON + timedelta(minutes=12, seconds=1))


def test_other_options_halt_or_pass_the_same_plan():
    plan = a_halted_plan()

    (strict,) = try_gate(plan, FailureBudget(tolerate=0)).catches
    tolerant = try_gate(plan, FailureBudget(tolerate=1))

    assert (strict.stage.name, strict.at, list(strict.nodes)) == ("Rest", NOON + timedelta(minutes=58), ["node-2"])
    assert (tolerant.catches, tolerant.unknown) == ([], [])


def test_a_halt_on_nodes_that_came_through_is_named_as_one():
    plan = a_halted_plan()

    first, second = try_gate(plan, DriverVersion(timeout=timedelta(minutes=2))).catches

    assert (first.stage.name, list(first.good_nodes)) == ("Canary", ["node-0"])
    assert (second.stage.name, list(second.nodes), list(second.good_nodes)) == (
        "Rest",
        ["node-1", "node-2"],
        ["node-1"],
    )


def test_a_stage_that_passed_at_once_is_no_pass_of_a_gate_without_evidence():
    """A gate that still waits then has read nothing of what is missing."""
    plan = a_halted_plan()
    plan.events.filter(what="stage", to="passed").update(at=NOON + timedelta(minutes=11))

    review = review_plan(plan, usual_options)

    assert {"allocatable_restored", "mig_state"} == {past.gate.key for past in review.passed}


def test_a_validator_that_the_gates_saw_fail_would_have_halted_the_plan():
    plan = a_halted_plan()
    began = NOON + timedelta(minutes=9)
    a_look(plan, 12, validator=ValidatorEvidence("after", is_ready=False, started_at=began, restarts=9, step="cuda"))

    found = try_gate(plan, ValidatorPassed()).earliest

    assert (found.stage.name, found.at, found.is_wait) == ("Canary", NOON + timedelta(minutes=12), False)
    assert found.report["summary"] == "Step cuda fails."


def test_pods_validators_and_samples_that_the_gates_saw_are_a_pass():
    plan = a_halted_plan(gates={**FEW_GATES, "xid": {}})
    plan.stages.exclude(index=0).delete()
    pod = PodEvidence("llm/llama-0", "ReplicaSet llm/llama", is_ready=True, started_at=NOON, restarts=0)
    a_look(plan, 12, workloads=(pod,))

    passed = {past.gate.key for past in review_plan(plan, usual_options).passed}

    assert {"validator_passed", "telemetry_fresh", "findings"} <= passed
    (nvlink,) = (past for past in review_plan(plan, usual_options).unknown if past.gate.key == "nvlink")
    assert nvlink.missing == ("samples of its metrics: no gate of the stage asked for them",)


def test_earlier_plans_for_which_no_time_is_left_are_named():
    plan, newer, older = a_halted_plan(), a_halted_plan(), a_halted_plan()
    Plan.objects.update(cluster=plan.cluster)
    Plan.objects.filter(pk=newer.pk).update(state_since=NOON + timedelta(days=1))
    seconds = iter((0, 0, LONGEST_PAST_S))

    past = try_gate_on_past(Plan.objects.all(), plan, DriverVersion(), most=5, clock=lambda: next(seconds))

    assert ([review.plan.pk for review in past.reviews], [one.pk for one in past.left]) == ([newer.pk], [older.pk])
