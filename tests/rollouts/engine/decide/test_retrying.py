"""Hazard Z5 (5): a node that fails in the rollback is tried again, and then a person is asked, with the way out."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from rollouts.engine.decide import decide
from rollouts.engine.decide.acts import Decision, MovePlan, MoveTarget, PlaceHolds, ReleaseWave, RequeueFailed
from rollouts.engine.snapshot import NodeSnapshot, Snapshot
from rollouts.gates.base import TargetEvidence
from rollouts.gates.driver_version import DriverVersion
from rollouts.lifecycle import PlanState, StageState, TargetState
from tests.make import NOON
from tests.rollouts.make import (
    NEW,
    NEW_HASH,
    OLD,
    OLD_HASH,
    a_held_target,
    a_node_snapshot,
    a_rollback_stage,
    a_snapshot,
    a_target,
    put_back,
)


def failed_node(name: str = "b", *, is_held: bool = False, **given: Any) -> NodeSnapshot:
    """Let go, cordoned by the operator, and given up on before its driver pod was replaced."""
    held = {"has_label": is_held, "label_is_ours": is_held, "hold_wanted": is_held}
    row = {"driver_version": NEW, "pod_hash": NEW_HASH, "upgrade_state": "upgrade-failed", "is_unschedulable": True}
    return a_node_snapshot(name, **held | row | given)


def crashing_node(name: str = "b", **given: Any) -> NodeSnapshot:
    """Its driver pod was made anew, for the old version, and does not come up."""
    return failed_node(name, **{"driver_version": "", "pod_hash": OLD_HASH} | given)


def waiting_node(name: str) -> NodeSnapshot:
    return a_node_snapshot(name, driver_version=NEW, pod_hash=NEW_HASH)


def failed(name: str = "b", **given: Any) -> TargetEvidence:
    row = {"state": TargetState.FAILED, "driver_version": NEW, "upgrade_state": "upgrade-failed"}
    return a_target(name, **row | given)


def rolling_back(
    *nodes: NodeSnapshot, targets: tuple[TargetEvidence, ...], failures: int = 1, **given: Any
) -> Snapshot:
    row = {"state": StageState.PROMOTING, "failures": {target.uid: failures for target in targets}}
    stage = row | {key: given.pop(key) for key in ("max_unavailable", "gates", "state_since") if key in given}
    return put_back(a_snapshot(a_rollback_stage(*targets, **stage), nodes=nodes), **given)


def decided(snapshot: Snapshot) -> Decision:
    return decide(snapshot, now=NOON)


def test_a_node_that_failed_is_taken_back_for_another_try():
    decision = decided(rolling_back(failed_node(), targets=(failed(),)))

    (move,) = decision.moves
    assert isinstance(move, MoveTarget)
    assert (move.name, move.to) == ("b", TargetState.HELD)
    assert "try 2 of 3" in move.reason


def test_it_is_held_and_queued_again_before_it_goes():
    """Its wave is one like any other: within the budget, and after the label was read back."""
    back = (a_held_target("b", driver_version=NEW, upgrade_state="upgrade-failed"),)
    queued = failed_node(is_held=True, upgrade_state="upgrade-required")

    assert decided(rolling_back(failed_node(), targets=back)).acts == (PlaceHolds({"uid-of-b": "b"}),)
    assert decided(rolling_back(failed_node(is_held=True), targets=back)).acts == (RequeueFailed({"uid-of-b": "b"}),)
    (act,) = decided(rolling_back(queued, targets=back)).acts
    assert isinstance(act, ReleaseWave)


@pytest.mark.parametrize("what", ["stale_reason", "paused_reason", "stopped_reason"])
def test_nothing_is_tried_again_while_something_says_stop(what: str):
    assert not decided(rolling_back(failed_node(), targets=(failed(),), **{what: "Stop."})).moves


def test_after_three_tries_a_person_is_asked():
    decision = decided(rolling_back(failed_node(), targets=(failed(),), failures=3))

    assert not decision.moves
    assert "b failed 3 times in the rollback" in decision.pause_reason
    assert "repair it or exclude it. Then resume." in decision.pause_reason


def test_a_pod_that_crashes_is_not_queued_again():
    """The operator would find the same pod with the same restarts."""
    decision = decided(rolling_back(crashing_node(), targets=(failed(),)))

    assert not decision.moves
    assert not decision.pause_reason
    assert f"b: the driver pod for {OLD} exists and does not become Ready" in decision.waiting_for
    assert "exclude the node" in decision.waiting_for


def test_a_pod_that_crashes_for_too_long_is_a_persons_matter():
    long_ago = NOON - timedelta(hours=3)
    snapshot = rolling_back(crashing_node(), targets=(failed(state_since=long_ago),), state_since=long_ago)

    assert "Then resume." in decided(snapshot).pause_reason


def test_a_node_that_crashed_before_its_wave_is_named_as_well():
    back = (a_held_target("b", upgrade_state="upgrade-failed"),)

    decision = decided(rolling_back(crashing_node(is_held=True), targets=back))

    assert "does not become Ready" in decision.waiting_for


def test_nobody_is_asked_while_others_can_go_back():
    back = (failed(), a_held_target("c", driver_version=NEW))
    snapshot = rolling_back(failed_node(), waiting_node("c"), targets=back, failures=3, max_unavailable=2)

    decision = decided(snapshot)

    assert not decision.pause_reason
    assert [act.targets for act in decision.acts if isinstance(act, ReleaseWave)] == [("c",)]


def test_where_the_failed_node_takes_the_whole_budget_a_person_is_asked():
    back = (failed(), a_held_target("c", driver_version=NEW))
    snapshot = rolling_back(failed_node(), waiting_node("c"), targets=back, failures=3, max_unavailable=1)

    assert decided(snapshot).pause_reason


def test_a_failed_node_that_is_gone_is_named():
    decision = decided(rolling_back(targets=(failed(),)))

    assert "b failed in the rollback and can no longer be seen. Exclude it." in decision.pause_reason


def test_a_node_that_a_person_queued_again_is_waited_for():
    decision = decided(rolling_back(failed_node(upgrade_state="upgrade-required"), targets=(failed(),), failures=3))

    assert not decision.pause_reason
    assert "queue" in decision.waiting_for


@pytest.mark.parametrize(
    ("nodes", "failures", "says"),
    [
        ([failed_node("b"), failed_node("c")], 1, "b, c failed in the rollback and are tried again."),
        (
            [failed_node("b"), failed_node("c")],
            3,
            "the operator could not evict the pods of the nodes. Read their events; repair them or exclude them.",
        ),
        (
            [crashing_node("b"), crashing_node("c")],
            1,
            "The operator continues once the pods are Ready. Read their logs, delete the pods, or exclude the nodes.",
        ),
        ([], 1, "b, c failed in the rollback and can no longer be seen. Exclude them."),
        (
            [failed_node(name, upgrade_state="upgrade-required") for name in ("b", "c")],
            3,
            "b, c failed and are in the operator's queue again.",
        ),
    ],
    ids=["again", "tried", "crashing", "gone", "queued"],
)
def test_of_several_nodes_it_speaks_as_of_several(nodes: list[NodeSnapshot], failures: int, says: str):
    snapshot = rolling_back(*nodes, targets=(failed("b"), failed("c")), failures=failures, max_unavailable=2)

    assert decided(snapshot).waiting_for.removesuffix(" Then resume.").endswith(says)


def test_a_node_that_was_made_again_has_tries_of_its_own():
    snapshot = rolling_back(replace(failed_node(), uid="anew"), targets=(replace(failed(), uid="anew"),))
    stages = tuple(replace(stage, failures={"uid-of-b": 3}) for stage in snapshot.stages)

    (move,) = decided(replace(snapshot, stages=stages)).moves

    assert (move.uid, move.to) == ("anew", TargetState.HELD)


def test_nothing_ends_with_a_node_that_is_not_back():
    for failures in (1, 3):
        moves = decided(rolling_back(failed_node(), targets=(failed(),), failures=failures)).moves
        assert not [move for move in moves if isinstance(move, MovePlan)]


def test_a_node_that_was_taken_out_keeps_nobody_from_the_end_and_is_named():
    out = a_target("b", state=TargetState.EXCLUDED, driver_version=NEW)
    snapshot = rolling_back(failed_node(is_held=True, upgrade_state="upgrade-required"), targets=(out,))

    assert decided(snapshot).moves[0].to is StageState.SOAKING
    over = decided(put_back(a_snapshot(a_rollback_stage(out, state=StageState.SOAKING), nodes=snapshot.nodes)))
    assert [move.to for move in over.moves if isinstance(move, MovePlan)] == [PlanState.ROLLED_BACK]
    assert over.waiting_for == f"Every other node runs {OLD} again: b was excluded from the rollback, and stays held."


def test_a_node_that_takes_too_long_is_named_while_it_is_waited_for():
    late = a_target("b", state=TargetState.CHANGING, state_since=NOON - timedelta(hours=2), driver_version="")
    node = failed_node(upgrade_state="validation-required")

    decision = decided(rolling_back(node, targets=(late,), gates=(DriverVersion(),)))

    assert (
        decision.waiting_for
        == f"1 node is rolling back to {OLD}. But: b did not load driver {OLD} in time. The limit is 30 min for a node."
    )
