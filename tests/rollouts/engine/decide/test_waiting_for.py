"""What a plan says that it waits for is what keeps it from moving, and not what mostly does."""

from dataclasses import replace

import pytest

from gpu.upgrade_controller import LOOKS_AGAIN
from rollouts.engine.decide import decide
from rollouts.engine.decide.acts import Recall
from rollouts.lifecycle import PlanState, TargetState
from tests.make import NOON
from tests.rollouts.engine.operand import DcgmExporter
from tests.rollouts.make import (
    NEW_HASH,
    a_held_target,
    a_node_snapshot,
    a_rollback_stage,
    a_snapshot,
    a_stage,
    a_target,
    not_yet_written,
    put_back,
)


@pytest.mark.parametrize(
    ("their", "said"),
    [
        (1, "node-1 is held by somebody else: the owner of the label must remove it, or you exclude the node."),
        (
            2,
            (
                "node-1, node-2 are held by somebody else: the owner of the label must remove it, or you exclude the "
                "nodes."
            ),
        ),
    ],
)
def test_nodes_that_somebody_else_holds_do_not_wait_for_the_operator(their: int, said: str):
    names = [f"node-{number + 1}" for number in range(their)]
    nodes = tuple(a_node_snapshot(name, hold_is_foreign=True, label_is_ours=False) for name in names)

    decision = decide(a_snapshot(a_stage(*map(a_held_target, names)), nodes=nodes), now=NOON)

    assert (decision.acts, decision.moves) == ((), ())
    assert decision.waiting_for == f"Stage 0: {said}"


def test_a_node_that_cannot_be_seen_does_not_wait_for_the_operator():
    stage = a_stage(a_held_target("node-1", is_seen=False))

    decision = decide(a_snapshot(stage, nodes=(a_node_snapshot("node-1"),)), now=NOON)

    assert decision.acts == ()
    assert decision.waiting_for == "Stage 0: node-1 cannot be seen now."


def test_a_rollback_that_has_room_waits_for_the_queue_and_not_for_its_budget():
    node = a_node_snapshot("node-1", upgrade_state="upgrade-done", pod_hash=NEW_HASH)
    stage = a_rollback_stage(a_held_target("node-1"), state="promoting")
    snapshot = put_back(a_snapshot(a_stage(a_target("node-1"), state="abandoned"), stage, nodes=(node,)))

    decision = decide(snapshot, now=NOON)

    assert decision.acts == ()
    queue = f"the operator has not queued it yet: {LOOKS_AGAIN}"
    assert decision.waiting_for == f"1 node must still be rolled back; {queue}."


def test_a_node_that_failed_before_is_not_on_the_way():
    """It waited for ever for what nobody was at work on."""
    failed, busy = (
        a_node_snapshot("node-1", upgrade_state="upgrade-failed"),
        a_node_snapshot("node-2", upgrade_state="drain-required"),
    )
    snapshot = not_yet_written(a_snapshot(a_stage(a_held_target("node-1")), nodes=(failed, busy)))

    both, one = (decide(each, now=NOON) for each in (snapshot, replace(snapshot, nodes=(busy,))))

    gave_up = "node-1 failed in an earlier change, and the operator gave up."
    assert both.waiting_for == f"{gave_up} Repair it first (docs/takeover.md), or abort."
    assert one.waiting_for == "1 node is still on the way from an earlier change, such as node-2."


def test_a_halt_calls_back_and_does_not_say_meanwhile_that_it_cannot():
    """Of a component whose nodes go by their pods deleted."""
    target = a_held_target("node-1", state=TargetState.RELEASING)
    snapshot = a_snapshot(a_stage(target), nodes=(a_node_snapshot("node-1"),), component=DcgmExporter("cluster-policy"))

    decision = decide(replace(snapshot, state=PlanState.HALTED), now=NOON)

    assert decision.acts == (Recall(0, ("node-1",)),)
    assert decision.waiting_for == "Halted. A person decides: roll back, resume or abort."
