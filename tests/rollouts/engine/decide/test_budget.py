"""The upgrade controller's own arithmetic, as NVIDIA's GetUpgradesAvailable does it, and ours beside it."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu.upgrade_controller import unavailable_of
from rollouts.components.driver_crd import DriverCrd
from rollouts.components.throttle import UpgradePolicy, operator_room
from rollouts.engine.decide.budget import room
from rollouts.engine.snapshot import NodeSnapshot
from rollouts.lifecycle import TargetState
from tests.rollouts.make import (
    a_changed_node,
    a_held_target,
    a_node_snapshot,
    a_policy,
    a_snapshot,
    a_stage,
    a_target,
    ready,
)

STATES = [
    "",
    "upgrade-required",
    "upgrade-done",
    "cordon-required",
    "drain-required",
    "pod-restart-required",
    "uncordon-required",
    "upgrade-failed",
]


def fleet(*states: str, **given) -> tuple[NodeSnapshot, ...]:
    return tuple(a_node_snapshot(f"n{number}", upgrade_state=state, **given) for number, state in enumerate(states))


def free(policy: UpgradePolicy, nodes: tuple[NodeSnapshot, ...], *, waiting: int = 0) -> int:
    return operator_room(policy, nodes, waiting=waiting).nodes


@pytest.mark.parametrize("state", ["", "upgrade-done", "upgrade-required"])
def test_a_node_that_has_not_begun_takes_no_slot(state: str):
    assert free(a_policy(max_parallel=2), fleet(state, state)) == 2


@pytest.mark.parametrize("state", sorted({*STATES} - {"", "upgrade-done", "upgrade-required"}))
def test_a_node_on_its_way_takes_a_slot_and_so_does_a_failed_one(state: str):
    """One failed node stops a rollout with one slot: the operator's own breaker (nvidia.md 2.3)."""
    assert free(a_policy(max_parallel=1), fleet(state, "upgrade-required")) == 0


@pytest.mark.parametrize(("number", "verb"), [(0, "are"), (1, "is"), (2, "are")])
def test_what_sets_the_number_is_said_of_one_as_of_many(number: int, verb: str):
    nodes = fleet(*["drain-required"] * number, "upgrade-required")
    cordoned = tuple(a_node_snapshot(f"c{each}", is_unschedulable=True) for each in range(number))

    slots = operator_room(a_policy(max_parallel=3, max_unavailable=9), nodes, waiting=0)
    lost = operator_room(a_policy(max_unavailable=number), cordoned, waiting=0)

    assert slots.reason == f"the operator upgrades at most 3 at once, and {number} {verb} on the way"
    assert not cordoned or lost.reason == f"the operator allows {number} unavailable and {number} {verb}"


@pytest.mark.parametrize("broken", [{"is_unschedulable": True}, {"is_ready": False}, {"is_ready": None}])
def test_cordoned_and_not_ready_nodes_are_unavailable_whoever_made_them_so(broken: dict):
    nodes = (*fleet("upgrade-required", "upgrade-required"), a_node_snapshot("x", **broken))

    assert free(a_policy(max_unavailable=1), nodes) == 0
    assert free(a_policy(max_unavailable=3), nodes) == 2


def test_a_node_about_to_be_cordoned_counts_as_unavailable():
    assert free(a_policy(max_unavailable=1), fleet("cordon-required", "upgrade-required")) == 0


def test_no_limit_is_as_many_as_there_are():
    """`maxParallelUpgrades: 0` means unlimited (Z2)."""
    assert free(a_policy(max_parallel=0), fleet(*["upgrade-required"] * 5)) == 5


def test_what_was_released_and_has_not_begun_will_take_a_slot():
    """Z3: nothing is queued behind our back."""
    assert free(a_policy(max_parallel=2), fleet("upgrade-required", "upgrade-required"), waiting=1) == 1


def upgrades_available(policy: UpgradePolicy, nodes: tuple[NodeSnapshot, ...]) -> int:
    """k8s-operator-libs, common_manager.go, GetUpgradesAvailable: line by line, for comparison."""
    pending = ("", "upgrade-done", "upgrade-required")
    in_progress = len(nodes) - sum(node.upgrade_state in pending for node in nodes)
    required = sum(node.upgrade_state == "upgrade-required" for node in nodes)
    available = policy.max_parallel - in_progress if policy.max_parallel else required
    unavailable = sum(node.is_unschedulable or node.is_ready is not True for node in nodes)
    unavailable += sum(node.upgrade_state == "cordon-required" for node in nodes)
    most = len(nodes) if policy.max_unavailable is None else policy.max_unavailable
    available = min(available, most)
    if unavailable >= most:
        return 0
    if most < len(nodes) and unavailable + available > most:
        available = most - unavailable
    return available


some_nodes = st.lists(
    st.tuples(st.sampled_from(STATES), st.booleans(), st.sampled_from([True, True, False, None])),
    min_size=1,
    max_size=6,
).map(
    lambda rows: tuple(
        a_node_snapshot(f"n{number}", upgrade_state=state, is_unschedulable=cordoned, is_ready=is_ready)
        for number, (state, cordoned, is_ready) in enumerate(rows)
    )
)


@settings(max_examples=200)
@given(some_nodes, st.integers(1, 4), st.none() | st.integers(0, 6))
def test_never_finds_more_room_than_the_operator_does(nodes: tuple[NodeSnapshot, ...], parallel: int, most: int | None):
    """Z3: a wave is never larger than the operator's free slots."""
    policy = a_policy(max_parallel=parallel, max_unavailable=most)

    assert free(policy, nodes) <= max(0, upgrades_available(policy, nodes))


@pytest.mark.parametrize(
    ("amount", "nodes", "expected"),
    [
        ("25%", 8, 2),
        ("25%", 9, 3),
        ("25%", 1, 1),
        ("0%", 8, 0),
        ("100%", 8, 8),
        (3, 8, 3),
        ("3", 8, 3),
        (None, 8, None),
        ("half", 8, 0),
        ("%", 8, 0),
    ],
)
def test_percentages_are_of_all_nodes_and_rounded_up(amount, nodes: int, expected: int | None):
    assert unavailable_of({"maxUnavailable": amount}, nodes) == expected


def test_the_smaller_of_the_two_budgets_counts():
    """Z6."""
    targets = [a_held_target(f"n{number}") for number in range(5)]
    nodes = fleet(*["upgrade-required"] * 5)
    snapshot = a_snapshot(a_stage(*targets, max_unavailable=2), nodes=nodes, policy=a_policy(max_parallel=4))

    assert room(snapshot, snapshot.stages[0]).nodes == 2
    tighter = a_snapshot(a_stage(*targets, max_unavailable=5), nodes=nodes, policy=a_policy(max_parallel=3))
    assert room(tighter, tighter.stages[0]).nodes == 3


@pytest.mark.parametrize("state", [TargetState.RELEASING, TargetState.RELEASED, TargetState.CHANGING])
def test_a_target_in_flight_takes_the_stages_budget(state: TargetState):
    stage = a_stage(a_held_target("n0", state=state), a_held_target("n1"), max_unavailable=1)
    snapshot = a_snapshot(stage, nodes=fleet("upgrade-required", "upgrade-required"))

    assert room(snapshot, stage).nodes == 0


def test_a_broken_node_outside_the_stage_takes_its_budget_too():
    stage = a_stage(a_held_target("n0"), max_unavailable=1)
    snapshot = a_snapshot(stage, nodes=(*fleet("upgrade-required"), a_node_snapshot("elsewhere", is_ready=False)))

    found = room(snapshot, stage)

    assert found.nodes == 0
    assert "1 node unavailable" in found.reason


@pytest.mark.parametrize(
    "lacking",
    [{"operands": ready("Driver")}, {"allocatable": {"nvidia.com/gpu": 7}}, {"is_ready": False}, {"is_seen": False}],
)
def test_a_changed_node_keeps_its_place_until_it_works_again(lacking: dict):
    stage = a_stage(a_target("n0", **lacking), a_held_target("n1"), max_unavailable=1)
    snapshot = a_snapshot(stage, nodes=(a_changed_node("n0"), a_node_snapshot("n1")))

    assert room(snapshot, stage).nodes == 0


def test_a_changed_node_that_works_gives_its_place_free():
    stage = a_stage(a_target("n0"), a_held_target("n1"), max_unavailable=1)
    snapshot = a_snapshot(stage, nodes=(a_changed_node("n0"), a_node_snapshot("n1")))

    assert room(snapshot, stage).nodes == 1


def test_one_node_counts_once_however_broken_it_is():
    stage = a_stage(a_held_target("n0", state=TargetState.FAILED), a_held_target("n1"), max_unavailable=2)
    nodes = (a_node_snapshot("n0", is_ready=False, is_unschedulable=True), a_node_snapshot("n1"))

    assert room(a_snapshot(stage, nodes=nodes), stage).nodes == 1


class Unthrottled(DriverCrd):
    room = None


def test_without_a_throttle_the_stages_budget_alone_says_how_many():
    stage = a_stage(a_held_target("n1"), a_held_target("n2"), max_unavailable=2)
    snapshot = a_snapshot(stage, nodes=fleet("upgrade-required", "upgrade-required"), policy=a_policy(max_parallel=1))

    assert room(snapshot, stage).nodes == 1
    alone = room(replace(snapshot, component=Unthrottled("h100")), stage)

    assert (alone.nodes, alone.reason) == (2, "the stage may have 2 unavailable: none of it used")
