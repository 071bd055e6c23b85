from datetime import timedelta
from typing import Any

import pytest

from rollouts.gates.base import Answer, GateResult
from rollouts.gates.validator_passed import ValidatorPassed
from rollouts.lifecycle import TargetState
from tests.make import NOON
from tests.rollouts.make import a_baseline, a_target, a_validator, evidence

DRIVER_AT = NOON - timedelta(minutes=5)


def evaluated(*targets, **options: Any) -> GateResult:
    return ValidatorPassed(**options).evaluate(evidence(*targets), now=NOON)


def validated(name: str = "node-1", *, before: str = "uid-before", **given: Any):
    return a_target(name, driver_started_at=DRIVER_AT, validator=a_validator(**given),
                    baseline=a_baseline(validator_uid=before))  # fmt: skip


def test_passes_on_a_run_since_the_change():
    result = evaluated(validated())

    assert result.answer is Answer.PASS
    assert result.reason == "The validator has passed on the one node since the change."
    assert result.measured == {"validated": 1, "failed": 0, "not run since": 0, "of": 1}


def test_a_ready_pod_from_before_proves_nothing():
    """The same pod, whatever its clock says."""
    result = evaluated(validated("a", before="uid-now", uid="uid-now"), validated("b"))

    assert (result.answer, result.nodes) == (Answer.WAIT, ("a",))
    assert result.reason == "The validator has not run on a since the change: its run is from before, or gone."


def test_a_run_that_began_before_the_driver_s_pod_is_an_old_one():
    """Also where nobody remembers which pod it was."""
    old = validated(before="", started_at=DRIVER_AT - timedelta(seconds=1))

    assert evaluated(old).answer is Answer.WAIT
    assert evaluated(validated(before="", started_at=DRIVER_AT)).answer is Answer.PASS


def test_without_a_driver_s_pod_no_run_is_new():
    assert evaluated(a_target(driver_started_at=None, validator=a_validator())).answer is Answer.WAIT


def test_a_validator_that_is_gone_is_waited_for_and_one_that_never_was_cannot_come():
    gone = evaluated(a_target(validator=None))
    never = evaluated(a_target(validator=None, baseline=a_baseline(operands=("Driver",))))

    assert (gone.answer, gone.is_final) == (Answer.WAIT, False)
    assert (never.answer, never.is_final) == (Answer.WAIT, True)
    assert "none was Ready there before" in never.reason


def test_names_the_step_that_is_at_work():
    result = evaluated(validated("a", is_ready=False, step="cuda-validation"), validated("b"))

    assert (result.answer, result.nodes) == (Answer.WAIT, ("a",))
    assert result.reason == "a: the validator is at cuda-validation."


@pytest.mark.parametrize(
    "given",
    [{"restarts": 4}, {"started_at": NOON - timedelta(minutes=11)}],
    ids=["crashes", "takes too long"],
)
def test_a_run_that_fails_names_its_step_and_cause(given: dict[str, Any]):
    target = validated(is_ready=False, step="cuda-validation", reason="CrashLoopBackOff", **given)
    early = {"driver_started_at": NOON - timedelta(hours=1)}

    result = evaluated(a_target("node-1", validator=target.validator, **early), validated("b"))

    assert (result.answer, result.nodes) == (Answer.FAIL, ("node-1",))
    assert result.reason == "node-1: the validator fails at cuda-validation (CrashLoopBackOff)."


def test_the_fourth_restart_fails_and_the_third_does_not():
    assert evaluated(validated(is_ready=False, restarts=3)).answer is Answer.WAIT
    assert evaluated(validated(is_ready=False, restarts=4)).answer is Answer.FAIL
    assert evaluated(validated(is_ready=False, restarts=4), max_restarts=4).answer is Answer.WAIT


def test_nodes_to_come_are_waited_for():
    result = evaluated(validated("a"), a_target("b", state=TargetState.CHANGING))

    assert result.answer is Answer.WAIT
    assert result.reason == "1 of 2 nodes are validated."


def test_a_run_on_a_node_that_nobody_sees_is_not_evaluated():
    unseen = a_target(is_seen=False, validator=a_validator(is_ready=False, restarts=9))

    assert evaluated(unseen).answer is not Answer.FAIL
