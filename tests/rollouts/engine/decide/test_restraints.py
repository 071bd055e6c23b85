"""What freezes and closed windows keep from going, by whole plan and by node."""

from dataclasses import replace

import pytest

from operations.failure_domains import Allowance, Budgets, Domain, DomainKind
from rollouts.engine.decide import decide
from rollouts.engine.decide.acts import FinishRelease, PlaceHolds, Recall, ReleaseWave
from rollouts.lifecycle import TargetState
from tests.make import NOON
from tests.rollouts.make import (
    NEW_HASH,
    a_changed_node,
    a_held_target,
    a_node_snapshot,
    a_rollback_stage,
    a_snapshot,
    a_stage,
    a_target,
    not_yet_written,
    put_back,
)

FROZEN = "The fleet is frozen by ada: Quarter end."
POOL = "Pool north/h200 is frozen by ada: Quarter end."


def held(*names: str, **given):
    targets = tuple(a_held_target(name) for name in names)
    nodes = tuple(a_node_snapshot(name) for name in names)
    return a_snapshot(a_stage(*targets, max_unavailable=4), nodes=nodes, **given)


def on_its_way(state: TargetState, **given):
    target = a_held_target("node-1", state=state)
    has_label = state is TargetState.RELEASING
    node = a_node_snapshot("node-1", hold_wanted=False, has_label=has_label, label_is_ours=has_label)
    other = a_node_snapshot("node-2")
    stage = a_stage(target, a_held_target("node-2"), max_unavailable=4)
    return a_snapshot(stage, nodes=(node, other), **given)


def test_nothing_goes_while_everything_is_frozen():
    decision = decide(held("node-1", frozen_reason=FROZEN), now=NOON)

    assert decision.waiting_for == FROZEN
    assert decision.acts == ()


def test_no_node_is_held_for_a_plan_that_may_not_begin():
    snapshot = not_yet_written(held("node-1", frozen_reason=FROZEN))
    free = tuple(replace(node, has_label=False) for node in snapshot.nodes)

    decision = decide(replace(snapshot, nodes=free), now=NOON)

    assert (decision.waiting_for, decision.acts) == (FROZEN, ())


@pytest.mark.parametrize("state", [TargetState.RELEASING, TargetState.RELEASED])
def test_a_freeze_calls_back_what_has_not_begun(state: TargetState):
    """Z3."""
    decision = decide(on_its_way(state, frozen_reason=FROZEN), now=NOON)

    assert decision.acts == (Recall(0, ("node-1",)),)


@pytest.mark.parametrize("state", [TargetState.RELEASING, TargetState.RELEASED])
def test_a_frozen_pool_calls_back_its_nodes_alone(state: TargetState):
    decision = decide(on_its_way(state, restrained={"uid-of-node-1": POOL}), now=NOON)

    assert decision.acts == (Recall(0, ("node-1",)),)
    assert decision.waiting_for == f"Holding node-1 again. {POOL}"


def test_a_node_of_another_pool_is_not_called_back():
    decision = decide(on_its_way(TargetState.RELEASED, restrained={"uid-of-node-2": POOL}), now=NOON)

    assert not any(isinstance(act, Recall) for act in decision.acts)


def test_a_partly_frozen_stage_goes_on_with_the_others():
    decision = decide(held("node-1", "node-2", "node-3", restrained={"uid-of-node-1": POOL}), now=NOON)

    (wave,) = decision.acts
    assert isinstance(wave, ReleaseWave)
    assert wave.targets == ("node-2", "node-3")


def test_a_stage_of_frozen_nodes_says_why_it_waits():
    restrained = {"uid-of-node-1": POOL, "uid-of-node-2": POOL}

    decision = decide(held("node-1", "node-2", restrained=restrained), now=NOON)

    assert decision.acts == ()
    assert decision.waiting_for == f"Stage 0: 2 nodes must still change. {POOL}"


def test_two_reasons_are_counted_by_the_commoner():
    other = "Pool north/spare is frozen by bob: x."
    restrained = {"uid-of-node-1": POOL, "uid-of-node-2": POOL, "uid-of-node-3": other}

    decision = decide(held("node-1", "node-2", "node-3", restrained=restrained), now=NOON)

    assert decision.waiting_for == f"Stage 0: 3 nodes must still change. {POOL} 2 of 3 wait for this."


def test_a_frozen_pool_is_said_also_where_the_others_wait_for_room():
    """It said how many of the other pool wait, as if those were all, and nothing of the freeze."""
    full = Domain(DomainKind.POOL, "1")
    budgets = Budgets({full: Allowance("pool north/a100", 1, {"x": "x (plan-1)"})}, {"node-1": (full,)})
    restrained = {"uid-of-node-2": POOL, "uid-of-node-3": POOL}

    decision = decide(held("node-1", "node-2", "node-3", restrained=restrained, budgets=budgets), now=NOON)

    assert decision.acts == ()
    assert decision.waiting_for == f"Stage 0: 3 nodes must still change. {POOL} 2 of 3 wait for this."


def test_who_is_neither_frozen_nor_free_is_told_the_other_reason():
    """One is frozen, the other cordoned by somebody else: waiting for the freeze alone would be half the truth."""
    snapshot = held("node-1", "node-2", restrained={"uid-of-node-1": POOL})
    nodes = tuple(replace(node, is_unschedulable=node.name == "node-2") for node in snapshot.nodes)

    decision = decide(replace(snapshot, nodes=nodes), now=NOON)

    assert decision.acts == ()
    also = "node-2 is cordoned by somebody else: uncordon or exclude."
    assert decision.waiting_for == f"Stage 0: 2 nodes must still change. {POOL} 1 of 2 waits for this. {also}"


def test_who_waits_for_room_is_frozen_or_cordoned_comes_to_all_that_are_to_go():
    full = Domain(DomainKind.POOL, "1")
    budgets = Budgets({full: Allowance("pool north/a100", 1, {"x": "x (plan-1)"})}, {"node-1": (full,)})
    snapshot = held("node-1", "node-2", "node-3", "node-4", restrained={"uid-of-node-2": POOL}, budgets=budgets)
    nodes = tuple(replace(node, is_unschedulable=node.name in {"node-3", "node-4"}) for node in snapshot.nodes)

    decision = decide(replace(snapshot, nodes=nodes), now=NOON)

    assert decision.acts == ()
    assert decision.waiting_for.startswith("Stage 0: 4 nodes must still change. ")
    assert " 1 of 4 waits for this." in decision.waiting_for
    assert decision.waiting_for.endswith("node-3, node-4 are cordoned by somebody else: uncordon or exclude.")


def going_back(**given):
    stage = a_rollback_stage(a_held_target("node-1", driver_version="580.95.05"), state="promoting")
    node = a_node_snapshot("node-1", driver_version="580.95.05", pod_hash=NEW_HASH)
    forward = a_stage(a_target("node-1"), state="abandoned")
    return put_back(a_snapshot(forward, stage, nodes=(node,)), **given)


def test_a_rollback_goes_on_where_no_freeze_holds_it():
    (wave,) = decide(going_back(), now=NOON).acts

    assert isinstance(wave, ReleaseWave)


@pytest.mark.parametrize("given", [{"frozen_reason": FROZEN}, {"restrained": {"uid-of-node-1": FROZEN}}])
def test_a_rollback_waits_where_a_freeze_says_so(given):
    decision = decide(going_back(**given), now=NOON)

    assert decision.acts == ()
    assert FROZEN in decision.waiting_for


@pytest.mark.parametrize("given", [{"frozen_reason": FROZEN}, {"restrained": {"uid-of-node-1": FROZEN}}])
def test_a_release_of_the_rollback_that_is_not_seen_through_is_called_back_by_a_freeze(given):
    """It was taken for a release to finish: the sentence was not true, and its label stayed as it was."""
    snapshot = going_back(**given)
    target = a_held_target("node-1", driver_version="580.95.05", state=TargetState.RELEASING)
    nodes = tuple(replace(node, hold_wanted=False) for node in snapshot.nodes)
    stages = (snapshot.stages[0], a_rollback_stage(target, state="promoting"))

    decision = decide(replace(snapshot, stages=stages, nodes=nodes), now=NOON)

    assert not any(isinstance(act, FinishRelease) for act in decision.acts)
    assert decision.acts == (Recall(9, ("node-1",)),)
    assert FROZEN in decision.waiting_for


def test_a_late_node_is_held_while_a_frozen_one_is_called_back():
    snapshot = on_its_way(TargetState.RELEASED, restrained={"uid-of-node-1": POOL})
    late = a_changed_node("late", hold_wanted=None, is_late_node=True)

    decision = decide(replace(snapshot, nodes=(*snapshot.nodes, late)), now=NOON)

    assert decision.acts == (Recall(0, ("node-1",)), PlaceHolds({"uid-of-late": "late"}))
