import pytest

from rollouts.gates.base import Answer
from rollouts.gates.failure_budget import FailureBudget
from rollouts.lifecycle import TargetState
from tests.make import NOON
from tests.rollouts.make import a_held_target, a_target, evidence


def some(failed: int, *, of: int = 6):
    states = [TargetState.FAILED] * failed + [TargetState.CHANGED] * (of - failed)
    return evidence(*(a_target(f"node-{number}", state=state) for number, state in enumerate(states)))


@pytest.mark.parametrize("tolerated", [0, 1, 4])
def test_tolerates_n_and_fails_at_the_next(tolerated: int):
    """`tolerate = n` means that the (n+1)th fails, everywhere."""
    gate = FailureBudget(tolerate=tolerated)

    assert gate.judge(some(tolerated), now=NOON).answer is Answer.PASS
    assert gate.judge(some(tolerated + 1), now=NOON).answer is Answer.FAIL


def test_a_changed_node_that_is_not_ready_counts():
    shown = evidence(a_target("node-1", is_ready=False), a_target("node-2"))

    judgement = FailureBudget().judge(shown, now=NOON)

    assert judgement.answer is Answer.FAIL
    assert judgement.nodes == ("node-1",)


def test_a_node_of_which_nobody_knows_whether_it_is_ready_does_not_count():
    assert FailureBudget().judge(evidence(a_target(is_ready=None)), now=NOON).answer is Answer.PASS


def test_the_operators_word_counts_before_ours_does():
    shown = evidence(a_target(state=TargetState.CHANGING, upgrade_state="upgrade-failed"))

    assert FailureBudget().judge(shown, now=NOON).answer is Answer.FAIL


def test_one_node_counts_once():
    shown = evidence(a_target(state=TargetState.FAILED, upgrade_state="upgrade-failed", is_ready=False))

    assert FailureBudget(tolerate=1).judge(shown, now=NOON).measured["failed"] == 1


def test_a_failed_node_that_was_excluded_is_given_up():
    shown = evidence(a_target("node-1", state=TargetState.EXCLUDED, upgrade_state="upgrade-failed"), a_target("node-2"))

    assert FailureBudget().judge(shown, now=NOON).answer is Answer.PASS


def test_waits_until_every_node_has_changed():
    shown = evidence(a_target("node-1"), a_held_target("node-2"))

    judgement = FailureBudget().judge(shown, now=NOON)

    assert judgement.answer is Answer.WAIT
    assert "1 node is still to come" in judgement.because
