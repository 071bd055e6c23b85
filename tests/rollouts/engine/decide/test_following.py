import pytest

from rollouts.engine.decide.target_progress import follow
from rollouts.engine.snapshot import NodeSnapshot
from rollouts.gates.base import TargetEvidence
from rollouts.lifecycle import TARGET_MOVES, TargetState
from tests.rollouts.make import (
    NEW_HASH,
    OLD,
    OLD_HASH,
    a_changed_node,
    a_held_target,
    a_node_snapshot,
    a_rollback_stage,
    a_snapshot,
    a_stage,
    put_back,
)

RELEASING, RELEASED = TargetState.RELEASING, TargetState.RELEASED
CHANGING, CHANGED, FAILED = TargetState.CHANGING, TargetState.CHANGED, TargetState.FAILED
HELD, EXCLUDED = TargetState.HELD, TargetState.EXCLUDED


def a_free_node(**given) -> NodeSnapshot:
    return a_node_snapshot(**{"has_label": False, "label_is_ours": False, "hold_wanted": False} | given)


def moves_of(target: TargetEvidence, node: NodeSnapshot, **given) -> list[TargetState]:
    snapshot = a_snapshot(a_stage(target), nodes=(node,), **given)
    return [move.to for move in follow(snapshot, snapshot.stages[0])]


def path_of(state: TargetState, node: NodeSnapshot, **given) -> list[TargetState]:
    """Every move until nothing more follows from what is seen."""
    path: list[TargetState] = []
    while found := moves_of(a_held_target(state=path[-1] if path else state), node, **given):
        path += found
        assert len(path) < 9, f"never comes to rest: {path}"
    return path


def test_a_held_node_stays_held():
    assert path_of(HELD, a_node_snapshot()) == []


def test_a_release_is_done_when_the_label_is_seen_to_be_gone():
    assert path_of(RELEASING, a_node_snapshot()) == []
    assert path_of(RELEASING, a_free_node()) == [RELEASED]


@pytest.mark.parametrize("state", ["cordon-required", "drain-required", "validation-required", "uncordon-required"])
def test_a_node_that_the_operator_works_on_is_changing(state: str):
    assert path_of(RELEASED, a_free_node(upgrade_state=state)) == [CHANGING]


@pytest.mark.parametrize("state", [RELEASING, RELEASED, CHANGING, FAILED])
def test_a_node_that_came_through_is_changed_wherever_we_last_saw_it(state: TargetState):
    """Workers may have been away for the whole of it: no state may be a dead end."""
    assert path_of(state, a_changed_node())[-1] is CHANGED


@pytest.mark.parametrize("state", [RELEASING, RELEASED, CHANGING, CHANGED])
def test_a_node_that_the_operator_gave_up_is_failed_wherever_we_last_saw_it(state: TargetState):
    assert path_of(state, a_free_node(upgrade_state="upgrade-failed"))[-1] is FAILED


@pytest.mark.parametrize(
    "still",
    [
        {"driver_version": OLD},
        {"driver_version": ""},
        {"pod_hash": OLD_HASH},
        {"pod_hash": ""},
        {"upgrade_state": "validation-required"},
    ],
    ids=str,
)
def test_success_is_read_from_the_node_and_never_from_the_operators_label_alone(still: dict):
    assert CHANGED not in path_of(CHANGING, a_changed_node(**still))


def test_nothing_is_changed_before_the_template_has_followed():
    assert CHANGED not in path_of(CHANGING, a_changed_node(), unsettled=("nvidia-driver",))


def test_a_changed_node_that_begins_again_is_changing_again():
    assert path_of(CHANGED, a_changed_node(pod_hash="")) == [CHANGING]


def test_what_a_person_took_out_is_not_followed():
    assert path_of(EXCLUDED, a_changed_node()) == []


@pytest.mark.parametrize("state", sorted(TargetState))
def test_not_seen_is_not_changed_and_not_failed(state: TargetState):
    failed = a_free_node(upgrade_state="upgrade-failed")

    assert moves_of(a_held_target(state=state, is_seen=False), failed) == []


@pytest.mark.parametrize("state", sorted(TargetState))
def test_every_move_is_in_the_table(state: TargetState):
    for node in (a_changed_node(), a_node_snapshot(), a_free_node(), a_free_node(upgrade_state="upgrade-failed")):
        assert set(moves_of(a_held_target(state=state), node)) <= TARGET_MOVES[state]


@pytest.mark.parametrize(
    "node",
    [
        a_node_snapshot(upgrade_state="pod-restart-required"),
        a_node_snapshot(upgrade_state="upgrade-failed"),
        a_node_snapshot(pod_hash=NEW_HASH),
        a_changed_node(has_label=True, label_is_ours=True, hold_wanted=True),
    ],
    ids=["at-work", "failed", "new-pod", "changed"],
)
def test_a_held_node_that_changes_all_the_same_has_escaped(node: NodeSnapshot):
    """Z4."""
    snapshot = a_snapshot(a_stage(a_held_target()), nodes=(node,))

    (move,) = follow(snapshot, snapshot.stages[0])

    assert (move.to, move.has_escaped) == (CHANGING, True)


def test_in_the_rollback_a_node_in_the_middle_goes_on_by_itself():
    target = a_held_target(upgrade_state="drain-required")
    node = a_node_snapshot(upgrade_state="drain-required", pod_hash=NEW_HASH)
    snapshot = put_back(a_snapshot(a_rollback_stage(target), nodes=(node,)))

    (move,) = follow(snapshot, snapshot.rollback_stage)

    assert (move.to, move.has_escaped) == (CHANGING, False)


def test_in_the_rollback_a_held_node_that_failed_waits_for_its_wave():
    """Z5: it leaves upgrade-failed by its label, and goes back in a wave like any other."""
    node = a_node_snapshot(upgrade_state="upgrade-failed", pod_hash=NEW_HASH)
    snapshot = put_back(a_snapshot(a_rollback_stage(a_held_target()), nodes=(node,)))

    assert follow(snapshot, snapshot.rollback_stage) == ()


@pytest.mark.parametrize("state", [CHANGING, FAILED])
def test_in_the_rollback_a_node_that_is_queued_anew_and_held_waits_for_a_wave(state: TargetState):
    """Somebody changed the template while it was on its way: nobody would let it go any more."""
    node = a_node_snapshot()
    target = a_held_target(state=state)
    snapshot = put_back(a_snapshot(a_rollback_stage(target), nodes=(node,)))

    (move,) = follow(snapshot, snapshot.rollback_stage)

    assert move.to is HELD


def test_in_the_rollback_a_node_that_nobody_holds_goes_on():
    snapshot = put_back(a_snapshot(a_rollback_stage(a_held_target(state=CHANGING)), nodes=(a_free_node(),)))

    assert follow(snapshot, snapshot.rollback_stage) == ()
