from datetime import timedelta

import pytest

from rollouts.gates.base import Answer
from rollouts.gates.driver_version import DriverVersion
from rollouts.lifecycle import TargetState
from tests.make import NOON
from tests.rollouts.make import NEW, OLD, a_held_target, a_target, evidence

PATIENCE = timedelta(minutes=30)
GATE = DriverVersion(PATIENCE)


def test_passes_when_every_node_names_the_new_driver():
    result = GATE.evaluate(evidence(a_target("node-1"), a_target("node-2")), now=NOON)

    assert result.answer is Answer.PASS
    assert result.title == f"2 nodes run driver {NEW}"


def test_fails_when_a_changed_node_runs_another_driver():
    result = GATE.evaluate(evidence(a_target("node-1"), a_target("node-2", driver_version=OLD)), now=NOON)

    assert result.answer is Answer.FAIL
    assert result.nodes == ("node-2",)


def test_a_dropped_zero_is_the_same_driver():
    assert GATE.evaluate(evidence(a_target(driver_version="580.95.5")), now=NOON).answer is Answer.PASS


def test_a_changed_node_that_does_not_say_its_driver_is_waited_for():
    """Labels vanish while a driver changes (Z21): silence is not another driver."""
    result = GATE.evaluate(evidence(a_target(driver_version="")), now=NOON)

    assert result.answer is Answer.WAIT
    assert result.nodes == ("node-1",)


def test_waits_while_nodes_are_held():
    result = GATE.evaluate(evidence(a_target("node-1"), a_held_target("node-2")), now=NOON)

    assert result.answer is Answer.WAIT
    assert result.title == "1 of 2 nodes are still to change"


def test_fails_once_a_node_is_on_its_way_for_longer_than_its_timeout():
    in_time = a_target(state=TargetState.CHANGING, state_since=NOON - PATIENCE)
    late = a_target(state=TargetState.CHANGING, state_since=NOON - PATIENCE - timedelta(seconds=1))

    assert GATE.evaluate(evidence(in_time), now=NOON).answer is Answer.WAIT
    assert GATE.evaluate(evidence(late), now=NOON).answer is Answer.FAIL


def test_of_one_that_the_operator_is_through_with_it_says_who_may_not_have_looked_again():
    """A kubelet plugin of the DRA driver reads it when it starts: one that was not stopped names the old one."""
    since = NOON - timedelta(hours=1)
    late = {"state": TargetState.CHANGING, "state_since": since, "upgrade_state": "upgrade-done"}

    result = GATE.evaluate(evidence(a_target("a", driver_version=OLD, **late)), now=NOON)

    assert (result.answer, result.cause) == (Answer.FAIL, "late-to-name-it")
    assert result.summary == f"The operator finished on a, but {OLD} is reported there."
    assert result.steps[0].startswith("Restart the pod of gpu-feature-discovery")
    silent = GATE.evaluate(evidence(a_target("a", driver_version="", **late)), now=NOON)
    assert silent.cause == "late"


def test_of_one_that_is_late_for_its_jobs_it_says_so_and_what_helps():
    """Z14: the operator itself may wait for them without an end."""
    since = NOON - timedelta(hours=1)
    jobs = a_target("a", state=TargetState.CHANGING, state_since=since, upgrade_state="wait-for-jobs-required")
    other = a_target("b", state=TargetState.CHANGING, state_since=since, upgrade_state="pod-restart-required")

    result = GATE.evaluate(evidence(jobs, other), now=NOON)

    assert result.answer is Answer.FAIL
    assert result.title == f"2 nodes did not load driver {NEW} in time"
    assert result.summary == "The operator still waits for pods on a to end (waitForCompletion)."
    assert result.steps == ("End these pods.", "Or set waitForCompletion.timeoutSeconds in the driver object.")
    assert result.nodes == ("a", "b")


def test_a_held_node_may_wait_for_ever():
    waiting = a_held_target(state_since=NOON - timedelta(days=30))

    assert GATE.evaluate(evidence(waiting), now=NOON).answer is Answer.WAIT


def test_one_node_is_one_node():
    assert GATE.evaluate(evidence(a_target("node-1")), now=NOON).title == f"1 node runs driver {NEW}"
    wrong = GATE.evaluate(evidence(a_target("node-1", driver_version=OLD)), now=NOON)
    assert wrong.title == "node-1 runs another driver"
    assert wrong.summary == f"Driver {OLD} is loaded instead of {NEW}."


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("580.95.05", Answer.PASS),
        ("580.95.5", Answer.PASS),  # a ResourceSlice's, that a version library wrote
        ("580.95.05-ubuntu22.04", Answer.PASS),  # as image tags end
        ("v580.95.05", Answer.PASS),
        ("580.95.04", Answer.FAIL),
        ("580.126.20", Answer.FAIL),
        ("580.95", Answer.FAIL),  # a branch is not the version that was asked for
        ("580", Answer.FAIL),
        ("580.95.05-r2", Answer.FAIL),  # nobody's number: it is not taken for another build's
    ],
)
def test_what_a_node_names_is_compared_by_its_number_and_not_by_how_it_is_spelled(said, answer):
    """A plan asks for a number: preflight refuses branches, digests and suffixes (`components.driver.is_version`)."""
    assert GATE.evaluate(evidence(a_target(driver_version=said), to_version="580.95.05"), now=NOON).answer is answer
