import pytest

from rollouts.gates.base import Answer
from rollouts.gates.failure_budget import FailureBudget
from rollouts.lifecycle import TargetState
from tests.make import NOON
from tests.rollouts.make import a_held_target, a_target, evidence, values_of


def some(failed: int, *, of: int = 6):
    states = [TargetState.FAILED] * failed + [TargetState.CHANGED] * (of - failed)
    return evidence(*(a_target(f"node-{number}", state=state) for number, state in enumerate(states)))


@pytest.mark.parametrize("tolerated", [0, 1, 4])
def test_tolerates_n_and_fails_at_the_next(tolerated: int):
    """`tolerate = n` means that the (n+1)th fails, everywhere."""
    gate = FailureBudget(tolerate=tolerated)

    assert gate.evaluate(some(tolerated), now=NOON).answer is Answer.PASS
    assert gate.evaluate(some(tolerated + 1), now=NOON).answer is Answer.FAIL


def test_a_changed_node_that_is_not_ready_counts():
    shown = evidence(a_target("node-1", is_ready=False), a_target("node-2"))

    result = FailureBudget().evaluate(shown, now=NOON)

    assert result.answer is Answer.FAIL
    assert result.nodes == ("node-1",)


def test_a_node_of_which_nobody_knows_whether_it_is_ready_does_not_count():
    assert FailureBudget().evaluate(evidence(a_target(is_ready=None)), now=NOON).answer is Answer.PASS


def test_the_operators_word_counts_before_ours_does():
    shown = evidence(a_target(state=TargetState.CHANGING, upgrade_state="upgrade-failed"))

    assert FailureBudget().evaluate(shown, now=NOON).answer is Answer.FAIL


def test_one_node_counts_once():
    shown = evidence(a_target(state=TargetState.FAILED, upgrade_state="upgrade-failed", is_ready=False))

    assert values_of(FailureBudget(tolerate=1).evaluate(shown, now=NOON))["Failed nodes"] == 1


def test_a_failed_node_that_was_excluded_is_given_up():
    shown = evidence(a_target("node-1", state=TargetState.EXCLUDED, upgrade_state="upgrade-failed"), a_target("node-2"))

    assert FailureBudget().evaluate(shown, now=NOON).answer is Answer.PASS


def test_waits_until_every_node_has_changed():
    shown = evidence(a_target("node-1"), a_held_target("node-2"))

    result = FailureBudget().evaluate(shown, now=NOON)

    assert result.answer is Answer.WAIT
    assert result.title == "1 of 2 nodes are still to change"


NO_EVICTION = "PodDisruptionBudget team-a/web allows no eviction of team-a/web-0."


def test_a_failed_node_is_named_with_its_cause_and_the_count_is_its_evidence():
    shown = evidence(a_target("node-1", state=TargetState.FAILED, failed_reason=NO_EVICTION), a_target("node-2"))

    result = FailureBudget().evaluate(shown, now=NOON)

    assert (result.title, result.summary) == ("node-1 failed", NO_EVICTION)
    assert values_of(result) == {
        "Failed nodes": 1, "Tolerated failures": 0, "Changed nodes": 1, "node-1": NO_EVICTION,
    }  # fmt: skip


def test_each_failed_node_has_its_own_cause_in_the_evidence():
    shown = evidence(
        a_target("node-1", state=TargetState.FAILED, failed_reason=NO_EVICTION),
        a_target("node-2", is_ready=False),
        a_target("node-3", state=TargetState.FAILED, failed_reason=NO_EVICTION),
        a_target("node-4", state=TargetState.FAILED),
    )

    result = FailureBudget().evaluate(shown, now=NOON)

    assert (result.title, result.summary) == ("4 nodes failed", f"node-1: {NO_EVICTION}")
    assert {node: values_of(result)[node] for node in result.nodes} == {
        "node-1": NO_EVICTION,
        "node-2": "The node is not Ready.",
        "node-3": NO_EVICTION,
        "node-4": "The cause is unknown.",
    }


def test_of_many_failed_nodes_the_others_are_counted():
    failed = [a_target(f"node-{n}", state=TargetState.FAILED, failed_reason=f"Cause {n}.") for n in range(25)]

    result = FailureBudget().evaluate(evidence(*failed), now=NOON)

    assert len(result.nodes) == 25
    assert values_of(result)["Not listed"] == 5
