"""A node that failed and that a person wants tried again (hazard Z5)."""

from dataclasses import replace
from typing import Any

from rollouts.engine.decide import decide
from rollouts.engine.decide.acts import Decision, MoveStage, MoveTarget, PlaceHolds, ReleaseWave, RequeueFailed
from rollouts.engine.snapshot import NodeSnapshot
from rollouts.gates.base import Answer, TargetEvidence
from rollouts.gates.driver_version import DriverVersion
from rollouts.gates.failure_budget import FailureBudget
from rollouts.lifecycle import PlanState, StageState, TargetState
from tests.make import NOON
from tests.rollouts.make import (
    DAEMONSET,
    NEW_HASH,
    a_changed_node,
    a_held_target,
    a_node_snapshot,
    a_snapshot,
    a_stage,
    a_target,
    evidence,
)

GATES = (DriverVersion(), FailureBudget())


def again(name: str = "a", **given) -> TargetEvidence:
    row: dict[str, Any] = {
        "is_retried": True,
        "upgrade_state": "upgrade-failed",
        "is_ready": True,
        "is_unschedulable": True,
    }
    return a_held_target(name, **row | given)


def a_failed_node(name: str = "a", **given) -> NodeSnapshot:
    row: dict[str, Any] = {"upgrade_state": "upgrade-failed", "is_unschedulable": True}
    return a_node_snapshot(name, **row | given)


def decided(*nodes: NodeSnapshot, targets: tuple[TargetEvidence, ...] = (), state=StageState.PROMOTING, **given):
    stage = a_stage(*(targets or (again(),)), gates=GATES, state=state)
    return decide(a_snapshot(stage, nodes=nodes, **given), now=NOON)


def acts(decision: Decision, kind: type) -> list:
    return [act for act in decision.acts if isinstance(act, kind)]


def test_it_is_held_before_it_is_queued():
    """Without the label the operator would take it at once."""
    decision = decided(a_failed_node(has_label=False, label_is_ours=False, hold_wanted=True))

    assert list(acts(decision, PlaceHolds)[0].nodes.values()) == ["a"]
    assert not acts(decision, RequeueFailed)


def test_it_is_held_while_the_plan_is_halted_and_queued_when_it_goes_on():
    unheld = a_failed_node(has_label=False, label_is_ours=False, hold_wanted=True)
    stage = a_stage(again(), gates=GATES, state=StageState.HALTED)
    halted = decide(a_snapshot(stage, nodes=(unheld,), state=PlanState.HALTED), now=NOON)

    assert acts(halted, PlaceHolds)
    assert list(acts(decided(a_failed_node()), RequeueFailed)[0].nodes.values()) == ["a"]


def test_a_halted_plan_queues_nothing():
    stage = a_stage(again(), gates=GATES, state=StageState.HALTED)

    assert not decide(a_snapshot(stage, nodes=(a_failed_node(),), state=PlanState.HALTED), now=NOON).acts


def test_queued_again_it_goes_although_the_operator_has_cordoned_it_and_the_budget_is_full():
    """It counts as broken in the budget, whether it goes or not."""
    queued = a_node_snapshot("a", is_unschedulable=True)

    (wave,) = acts(decided(queued), ReleaseWave)

    assert wave.targets == ("a",)


def test_it_does_not_go_beside_another_that_is_on_its_way():
    targets = (again(), a_target("b", state=TargetState.CHANGING))
    nodes = (a_node_snapshot("a", is_unschedulable=True), a_changed_node("b", upgrade_state="pod-restart-required"))

    assert not acts(decided(*nodes, targets=targets), ReleaseWave)


def test_it_is_no_escape_and_blamed_for_nothing():
    decision = decided(a_failed_node())

    assert decision.results[0]["failure_budget"].answer is Answer.WAIT
    assert not [move for move in decision.moves if isinstance(move, MoveStage)]


def test_what_the_operator_takes_up_by_itself_is_followed():
    (move,) = decided(a_failed_node(upgrade_state="uncordon-required", pod_hash=NEW_HASH)).moves

    assert isinstance(move, MoveTarget)
    assert (move.to, move.has_escaped) == (TargetState.CHANGING, False)


def test_where_its_new_pod_crashes_it_has_failed_once_more():
    """Another turn would find the same pod with the same restarts."""
    (move,) = decided(a_failed_node(pod_hash=NEW_HASH)).moves

    assert isinstance(move, MoveTarget)
    assert (move.to, move.has_escaped) == (TargetState.CHANGING, False)  # and failed with the next look
    assert "Another try would find the same driver pod, which does not become Ready" in move.reason


def test_a_stage_that_soaked_without_it_takes_it_up_again():
    targets = (again(), a_target("b"))

    decision = decided(a_failed_node(), a_changed_node("b"), targets=targets, state=StageState.SOAKING)

    assert [move.to for move in decision.moves if isinstance(move, MoveStage)] == [StageState.PROMOTING]


def test_one_whose_node_goes_away_before_its_next_try_has_failed_for_good():
    """It was let go once, and did not come back: nobody knows what it died of."""
    target = again("a", is_seen=False)
    snapshot = a_snapshot(
        a_stage(target, gates=GATES), newest_hashes={DAEMONSET: NEW_HASH}, gone={"uid-of-a": "was deleted"}
    )

    (move,) = (move for move in decide(snapshot, now=NOON).moves if isinstance(move, MoveTarget))

    assert (move.to, move.is_lost) == (TargetState.EXCLUDED, True)
    excluded = replace(target, state=move.to, is_lost=move.is_lost)
    assert FailureBudget().evaluate(evidence(excluded, a_target("b")), now=NOON).answer is Answer.FAIL
