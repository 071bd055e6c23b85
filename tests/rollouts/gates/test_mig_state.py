from datetime import timedelta
from typing import Any

import pytest

from rollouts.gates.base import Answer, GateResult
from rollouts.gates.mig_state import MigState
from rollouts.lifecycle import TargetState
from tests.make import NOON
from tests.rollouts.make import a_baseline, a_target, evidence, values_of

SMALL, LARGE = "nvidia.com/mig-1g.10gb", "nvidia.com/mig-3g.40gb"
CUT = {"nvidia.com/gpu": 4, SMALL: 14, LARGE: 2}
LONG_AGO = NOON - timedelta(hours=1)


def evaluated(*targets) -> GateResult:
    return MigState().evaluate(evidence(*targets), now=NOON)


def cut(name: str = "node-1", *, now: dict[str, int] = CUT, state: str = "success", was: str = "success", **given: Any):
    baseline = a_baseline(allocatable=CUT, mig_config_state=was)
    return a_target(name, baseline=baseline, allocatable=now, mig_config_state=state, **given)


def test_passes_with_as_many_of_each_profile_as_before():
    result = evaluated(cut(), a_target("whole"))

    assert result.answer is Answer.PASS
    assert result.sentence == ("1 node with MIG has the same slices as before. A MIG manager configured 1 of 1 node.")
    assert values_of(result)["Changed nodes with MIG"] == 1


@pytest.mark.parametrize(("nodes", "says"), [(1, "The changed node had no MIG before."),
                                             (2, "None of 2 changed nodes had MIG before.")])  # fmt: skip
def test_nodes_without_mig_pass_and_it_says_so(nodes: int, says: str):
    result = evaluated(*(a_target(f"node-{number}") for number in range(nodes)))

    assert (result.answer, result.sentence) == (Answer.PASS, says)


@pytest.mark.parametrize("now", [{"nvidia.com/gpu": 8}, {}])
def test_a_node_whose_manager_left_its_gpus_whole_has_no_mig(now: dict[str, int]):
    """As with the MIG configuration all-disabled."""
    whole = a_target(
        baseline=a_baseline(mig_config_state="success", mig_gpus=0), allocatable=now, mig_config_state="success"
    )

    result = evaluated(whole)

    assert (result.answer, result.sentence) == (Answer.PASS, "The changed node had no MIG before.")
    assert values_of(result)["Changed nodes with MIG"] == 0


def test_a_node_with_the_strategy_single_has_mig():
    """Its slices are called nvidia.com/gpu."""
    sliced = a_target(baseline=a_baseline(mig_config_state="success", mig_gpus=8), mig_config_state="success")

    assert values_of(evaluated(sliced))["Changed nodes with MIG"] == 1


def test_waits_for_the_manager_of_whole_gpus_too():
    whole = a_target(baseline=a_baseline(mig_config_state="success", mig_gpus=0), mig_config_state="pending")

    assert evaluated(whole).answer is Answer.WAIT


@pytest.mark.parametrize("state", ["pending", "rebooting", ""])
def test_waits_while_the_manager_is_at_work_however_few_slices_there_are(state: str):
    result = evaluated(cut(now={}, state=state, state_since=LONG_AGO))

    assert result.answer is Answer.WAIT
    assert values_of(result)["node-1"] == (state or "no state")


def test_a_manager_that_failed_fails():
    result = evaluated(cut("a", state="failed"), cut("b"))

    assert (result.answer, result.nodes) == (Answer.FAIL, ("a",))


def test_fewer_slices_wait_for_the_plugin_and_then_fail_with_the_numbers():
    """The label may say success from before (Z27)."""
    fewer = {**CUT, SMALL: 12}

    assert evaluated(cut(now=fewer)).answer is Answer.WAIT
    result = evaluated(cut(now=fewer, state_since=LONG_AGO))
    assert (result.answer, result.summary) == (Answer.FAIL, "12 mig-1g.10gb, 14 before.")


def test_one_profile_does_not_stand_for_another():
    assert evaluated(cut(now={SMALL: 20, LARGE: 0}, state_since=LONG_AGO)).answer is Answer.FAIL


def test_where_no_manager_cut_a_node_its_slices_are_counted_alone():
    assert evaluated(cut(state="", was="")).answer is Answer.PASS
    assert evaluated(cut(state="", was="", now={}, state_since=LONG_AGO)).answer is Answer.FAIL


@pytest.mark.parametrize(
    ("cut_by_hand", "others", "says"),
    [
        (1, 0, "A MIG manager configured 0 of 1 node."),
        (2, 0, "A MIG manager configured 0 of 2 nodes."),
        (1, 1, "A MIG manager configured 1 of 2 nodes."),
    ],
)
def test_no_state_is_claimed_of_a_node_that_no_manager_cut(cut_by_hand: int, others: int, says: str):
    by_hand = [cut(f"by-hand-{number}", state="", was="") for number in range(cut_by_hand)]

    result = evaluated(*by_hand, *(cut(f"managed-{number}") for number in range(others)))

    assert (result.answer, result.summary) == (Answer.PASS, says)


def test_without_a_baseline_nobody_knows():
    result = evaluated(a_target(baseline=None))

    assert (result.answer, result.is_final) == (Answer.WAIT, True)


def test_nodes_to_come_are_waited_for():
    assert evaluated(cut("a"), a_target("b", state=TargetState.HELD)).answer is Answer.WAIT
