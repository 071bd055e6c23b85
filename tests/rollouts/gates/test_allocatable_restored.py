from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollouts.gates.allocatable_restored import AllocatableRestored
from rollouts.gates.base import Answer
from tests.make import NOON
from tests.rollouts.make import a_baseline, a_held_target, a_target, evidence, values_of

GPU, SLICE = "nvidia.com/gpu", "nvidia.com/mig-1g.10gb"
SETTLE = timedelta(minutes=2)
GATE = AllocatableRestored(SETTLE)
SETTLED = NOON - SETTLE - timedelta(seconds=1)


def test_passes_with_as_many_gpus_as_before():
    result = GATE.evaluate(evidence(a_target("node-1"), a_target("node-2")), now=NOON)

    assert result.answer is Answer.PASS
    assert (
        result.sentence == "2 changed nodes offer as many GPUs as before. No resource has a smaller allocatable number."
    )


@given(st.integers(1, 16), st.integers(0, 15))
def test_fewer_than_before_fails_once_the_node_has_settled(had: int, has: int):
    """A GPU that does not come back is a failure, not a wait (Z24)."""
    target = a_target(baseline=a_baseline(allocatable={GPU: had}), allocatable={GPU: has}, state_since=SETTLED)

    expected = Answer.FAIL if has < had else Answer.PASS

    assert GATE.evaluate(evidence(target), now=NOON).answer is expected


def test_fewer_is_a_wait_until_the_node_has_settled():
    target = a_target(allocatable={GPU: 7}, state_since=NOON - SETTLE)

    result = GATE.evaluate(evidence(target), now=NOON)

    assert result.answer is Answer.WAIT
    assert result.nodes == ("node-1",)


def test_a_resource_that_the_node_no_longer_names_is_fewer():
    """A stopped device plugin makes the resource vanish (Z24)."""
    target = a_target(allocatable={}, state_since=SETTLED)

    assert GATE.evaluate(evidence(target), now=NOON).answer is Answer.FAIL


@pytest.mark.parametrize("was", [None, a_baseline(allocatable=None)])
def test_a_number_that_nobody_knows_is_no_pass(was):
    assert GATE.evaluate(evidence(a_target(baseline=was)), now=NOON).answer is Answer.WAIT


def test_a_node_with_more_does_not_make_up_for_one_with_fewer():
    more = a_target("node-1", allocatable={GPU: 9}, state_since=SETTLED)
    fewer = a_target("node-2", allocatable={GPU: 7}, state_since=SETTLED)

    result = GATE.evaluate(evidence(more, fewer), now=NOON)

    assert result.answer is Answer.FAIL
    assert result.nodes == ("node-2",)


def test_a_node_that_is_not_seen_is_compared_with_nothing():
    """It offers nobody knows how many: 0 of its 8 would read as 8 lost."""
    unseen = a_target("node-2", is_seen=False, allocatable={})

    result = GATE.evaluate(evidence(a_target("node-1"), unseen, a_held_target("node-3")), now=NOON)

    assert result.answer is Answer.WAIT
    assert values_of(result) == {f"{GPU} before": 8, f"{GPU} now": 8}


def test_waits_while_nodes_are_still_to_come():
    assert GATE.evaluate(evidence(a_target("a"), a_held_target("b")), now=NOON).answer is Answer.WAIT


def test_slices_do_not_make_up_for_gpus():
    """A node whose MIG layout was lost with the change offers other things, not as many."""
    target = a_target(baseline=a_baseline(allocatable={SLICE: 14}), allocatable={GPU: 8}, state_since=SETTLED)

    result = GATE.evaluate(evidence(target), now=NOON)

    assert result.answer is Answer.FAIL
    assert values_of(result)[f"{SLICE} before"] == 14
    assert values_of(result)[f"{SLICE} now"] == 0
