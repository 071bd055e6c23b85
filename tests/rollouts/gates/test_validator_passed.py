from datetime import timedelta
from typing import Any

import pytest

from rollouts.gates.base import Answer, GateResult
from rollouts.gates.validator_passed import ValidatorPassed
from rollouts.lifecycle import TargetState
from tests.make import NOON
from tests.rollouts.make import a_baseline, a_target, a_validator, evidence, values_of

DRIVER_AT = NOON - timedelta(minutes=5)


def evaluated(*targets, **options: Any) -> GateResult:
    return ValidatorPassed(**options).evaluate(evidence(*targets), now=NOON)


def validated(name: str = "node-1", *, before: str = "uid-before", **given: Any):
    return a_target(name, driver_started_at=DRIVER_AT, validator=a_validator(**given),
                    baseline=a_baseline(validator_uid=before))  # fmt: skip


def test_passes_on_a_run_since_the_change():
    result = evaluated(validated())

    assert result.answer is Answer.PASS
    assert result.sentence == "The validator has passed on 1 changed node. Every run began after the change."
    assert values_of(result) == {
        "Validated nodes": 1, "Failed validators": 0, "Not run since the change": 0, "Nodes of the stage": 1,
    }  # fmt: skip


def test_a_ready_pod_from_before_proves_nothing():
    """The same pod, whatever its clock says."""
    result = evaluated(validated("a", before="uid-now", uid="uid-now"), validated("b"))

    assert (result.answer, result.nodes) == (Answer.WAIT, ("a",))
    assert result.sentence == "The validator has not run on a since the change. An earlier run does not count."


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
    assert never.summary == "None was Ready there before the change."


def test_names_the_step_that_is_at_work():
    result = evaluated(validated("a", is_ready=False, step="cuda-validation"), validated("b"))

    assert (result.answer, result.nodes) == (Answer.WAIT, ("a",))
    assert result.sentence == "The validator is running on a. Step cuda-validation is in progress."


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
    assert result.sentence == "The validator fails on node-1. Step cuda-validation fails (CrashLoopBackOff)."


def test_the_fourth_restart_fails_and_the_third_does_not():
    assert evaluated(validated(is_ready=False, restarts=3)).answer is Answer.WAIT
    assert evaluated(validated(is_ready=False, restarts=4)).answer is Answer.FAIL
    assert evaluated(validated(is_ready=False, restarts=4), max_restarts=4).answer is Answer.WAIT


def test_nodes_to_come_are_waited_for():
    result = evaluated(validated("a"), a_target("b", state=TargetState.CHANGING))

    assert result.answer is Answer.WAIT
    assert result.sentence == "1 of 2 nodes are still to change. The gate evaluates each node after its change."


def test_a_run_on_a_node_that_nobody_sees_is_not_evaluated():
    unseen = a_target(is_seen=False, validator=a_validator(is_ready=False, restarts=9))

    assert evaluated(unseen).answer is not Answer.FAIL
