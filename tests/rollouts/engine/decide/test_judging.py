from rollouts.engine.decide.gate_evaluation import evaluate, first_result
from rollouts.gates.approval import ApprovalGate
from rollouts.gates.base import Answer, GateResult, When
from rollouts.gates.driver_version import DriverVersion
from rollouts.lifecycle import TargetState
from tests.make import NOON
from tests.rollouts.make import a_stage, a_target


def test_asks_each_gate_when_it_is_to_be_asked():
    stage = a_stage(a_target(), gates=(ApprovalGate(), DriverVersion()))

    assert list(evaluate(stage, When.ENTRY, now=NOON)) == ["approval"]
    assert list(evaluate(stage, When.THROUGH, now=NOON)) == ["driver_version"]


def test_a_pass_on_what_cannot_be_seen_is_a_hold_that_names_it():
    stage = a_stage(a_target("node-1"), a_target("node-2", is_seen=False))

    result = evaluate(stage, When.THROUGH, now=NOON)["driver_version"]

    assert result.answer is Answer.WAIT
    assert result.nodes == ("node-2",)


def test_a_fail_on_an_old_snapshot_is_still_a_fail():
    stage = a_stage(a_target(is_seen=False, driver_version="1.2.3"))

    assert evaluate(stage, When.THROUGH, now=NOON)["driver_version"].answer is Answer.FAIL


def test_a_stage_whose_targets_were_all_taken_out_cannot_be_evaluated():
    stage = a_stage(a_target(state=TargetState.EXCLUDED))

    assert evaluate(stage, When.THROUGH, now=NOON)["driver_version"].answer is Answer.WAIT


def test_finds_the_first_of_an_answer():
    results = {
        "a": GateResult(Answer.PASS, title=""),
        "b": GateResult(Answer.WAIT, title="1"),
        "c": GateResult(Answer.WAIT, title="2"),
    }

    assert first_result(Answer.WAIT, results) == ("b", GateResult(Answer.WAIT, title="1"))
    assert first_result(Answer.FAIL, results) is None
