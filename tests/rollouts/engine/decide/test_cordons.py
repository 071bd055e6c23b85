"""Z7, Z8: for how long a node takes no pods, and what waits until it does."""

from dataclasses import replace
from datetime import timedelta

import pytest

from operations.test_jobs.test_progress import TestJobOutcome
from rollouts.engine.decide import decide
from rollouts.engine.decide.acts import CordonAgain, Decision, MovePlan, MoveStage, Uncordon
from rollouts.engine.decide.budget import given_back
from rollouts.engine.snapshot import CordonedByUs, NodeSnapshot, Snapshot
from rollouts.gates.base import TestJobEvidence
from rollouts.gates.driver_version import DriverVersion
from rollouts.gates.test_job import TestJobGate
from rollouts.lifecycle import PlanState, StageState, TargetState
from tests.make import NOON
from tests.rollouts.make import (
    DAEMONSET,
    OLD,
    OLD_HASH,
    a_changed_node,
    a_held_target,
    a_node_snapshot,
    a_rollback_stage,
    a_snapshot,
    a_stage,
    a_target,
    put_back,
    with_facts,
)

OURS = CordonedByUs("a")
FAILED = CordonedByUs("a", has_failed=True)
UNTESTED = {"test_job": None, "is_cordoned_by_us": True}
GATES = (DriverVersion(), TestJobGate())


def decided(snapshot: Snapshot) -> Decision:
    return decide(snapshot, now=NOON)


def uncordoned(decision: Decision) -> list[str]:
    return [name for act in decision.acts if isinstance(act, Uncordon) for name in act.nodes.values()]


def again(decision: Decision) -> list[str]:
    return [name for act in decision.acts if isinstance(act, CordonAgain) for name in act.nodes.values()]


def released_node(**given) -> NodeSnapshot:
    row = {"has_label": False, "label_is_ours": False, "hold_wanted": False, "is_unschedulable": True}
    return a_node_snapshot("a", **row | given)


def changed(**given) -> NodeSnapshot:
    return a_changed_node("a", **{"is_unschedulable": True} | given)


def cordoned(target, node: NodeSnapshot, one: CordonedByUs = OURS, *, stage=None, **given) -> Snapshot:
    made = a_stage(target, gates=GATES, **stage or {})
    return a_snapshot(made, nodes=(node,), cordons={"uid-of-a": one}, our_cordons=frozenset({"uid-of-a"}), **given)


@pytest.mark.parametrize("state", [TargetState.RELEASING, TargetState.RELEASED, TargetState.CHANGING])
@pytest.mark.parametrize("plan", [PlanState.PROMOTING, PlanState.HALTED])
def test_what_is_in_the_operators_hands_stays_cordoned(state: TargetState, plan: PlanState):
    snapshot = cordoned(
        a_held_target("a", state=state, upgrade_state="drain-required"),
        released_node(upgrade_state="drain-required"),
        state=plan,
    )

    assert uncordoned(decided(snapshot)) == again(decided(snapshot)) == []


def test_what_changed_stays_cordoned_until_its_test_has_completed():
    assert uncordoned(decided(cordoned(a_target("a", **UNTESTED), changed()))) == []

    assert uncordoned(decided(cordoned(a_target("a"), changed()))) == ["a"]


@pytest.mark.parametrize("outcome", [None, TestJobOutcome.FAILED, TestJobOutcome.UNKNOWN])
def test_no_answer_lets_no_pod_in(outcome: TestJobOutcome | None):
    snapshot = cordoned(a_target("a", test_job=TestJobEvidence(outcome)), changed())

    assert uncordoned(decided(snapshot)) == []


def test_a_gate_that_is_overridden_lets_them_in():
    snapshot = cordoned(a_target("a", **UNTESTED), changed(), stage={"overridden": frozenset({"test_job"})})

    assert uncordoned(decided(snapshot)) == ["a"]


@pytest.mark.parametrize("given", [{"state": PlanState.HALTED}, {"stopped_reason": "Somebody stopped everything."}])
def test_while_nothing_goes_nothing_comes(given):
    assert uncordoned(decided(cordoned(a_target("a"), changed(), **given))) == []


def test_one_that_somebody_has_taken_back_by_hand_is_not_cordoned_again():
    """A Quarterdeck that wakes up with a halted plan: the node runs the old driver, which needs no test."""
    back = a_node_snapshot("a", has_label=False, label_is_ours=False, upgrade_state="upgrade-done")
    given = {"object_version": OLD, "newest_hashes": {DAEMONSET: OLD_HASH}, "state": PlanState.HALTED}
    decision = decided(cordoned(a_target("a", **UNTESTED), back, **given))

    assert again(decision) == []
    assert uncordoned(decision) == ["a"]


def test_one_that_is_not_cordoned_any_more_is_cordoned_again():
    snapshot = cordoned(a_target("a", **UNTESTED), changed(is_unschedulable=False))

    assert again(decided(snapshot)) == ["a"]


def test_one_that_nobody_has_read_back_is_written_again_but_not_before_it_is_released():
    unread = replace(OURS, is_placed=False)
    releasing = a_held_target("a", state=TargetState.RELEASING)

    assert again(decided(cordoned(releasing, released_node(), unread))) == ["a"]
    assert again(decided(cordoned(releasing, a_node_snapshot("a"), unread))) == []


@pytest.mark.parametrize("is_retried", [False, True])
def test_what_is_held_again_takes_pods_but_for_what_failed_once_and_waits_for_its_turn(*, is_retried: bool):
    snapshot = cordoned(a_held_target("a", is_retried=is_retried), a_node_snapshot("a", is_unschedulable=True))

    assert uncordoned(decided(snapshot)) == ([] if is_retried else ["a"])


def test_what_the_operator_is_at_work_on_is_waited_for_whatever_was_decided():
    node = released_node(upgrade_state="validation-required")
    snapshot = cordoned(a_target("a", state=TargetState.EXCLUDED), node)

    assert uncordoned(decided(snapshot)) == []
    assert "uncordoned" in decided(replace(snapshot, state=PlanState.ABORTING)).waiting_for or not any(
        isinstance(move, MovePlan) for move in decided(replace(snapshot, state=PlanState.ABORTING)).moves
    )


def test_no_stage_passes_before_its_nodes_take_pods_again():
    soaked = {"state": StageState.SOAKING, "state_since": NOON - timedelta(hours=1)}
    decision = decided(cordoned(a_target("a"), changed(), stage=soaked))

    assert not any(isinstance(move, MoveStage) for move in decision.moves)
    assert decision.waiting_for == "Stage 0 passes once a is uncordoned."
    assert uncordoned(decision) == ["a"]


def test_whose_test_failed_stays_cordoned_when_the_plan_is_given_up_and_that_is_said():
    snapshot = cordoned(
        a_target("a", test_job=None), changed(has_label=True, label_is_ours=True, hold_wanted=True), FAILED
    )
    decision = decided(put_back(snapshot, state=PlanState.ABORTING, is_live=True))

    assert uncordoned(decision) == []
    (end,) = (move for move in decision.moves if isinstance(move, MovePlan))
    assert end.reason.endswith("a stays cordoned by this plan: its test Job failed.")


def test_whose_test_nobody_has_seen_takes_pods_when_the_plan_is_given_up():
    snapshot = cordoned(a_target("a", test_job=None), changed(has_label=True, label_is_ours=True, hold_wanted=True))
    decision = decided(put_back(snapshot, state=PlanState.ABORTING, is_live=True))

    assert uncordoned(decision) == ["a"]
    assert decision.moves == ()
    assert decision.waiting_for == "The plan ends once a is uncordoned."


def test_in_a_rollback_it_stays_cordoned_until_it_is_back_also_while_no_stage_has_it():
    """There are no targets for a moment, and it runs the driver that nothing has proven."""
    snapshot = put_back(cordoned(a_target("a", test_job=None), changed()), state=PlanState.ROLLING_BACK)
    assert uncordoned(decided(snapshot)) == []

    for state in (TargetState.HELD, TargetState.CHANGING, TargetState.FAILED):
        stages = (a_stage(a_target("a", test_job=None)), a_rollback_stage(a_held_target("a", state=state)))
        assert uncordoned(decided(replace(snapshot, stages=stages))) == [], state

    back = a_node_snapshot("a", is_unschedulable=True, has_label=False, label_is_ours=False, hold_wanted=False)
    stages = (a_stage(a_target("a", test_job=None)), a_rollback_stage(a_target("a", state=TargetState.CHANGED)))
    assert uncordoned(decided(replace(snapshot, stages=stages, nodes=(back,)))) == ["a"]


def test_it_is_out_in_the_ledger_until_it_takes_pods_again():
    snapshot = cordoned(a_target("a"), changed(), disruptions=frozenset({"uid-of-a"}))

    assert given_back(snapshot) == frozenset()
    assert given_back(with_facts(snapshot, cordons={}, nodes=(changed(is_unschedulable=False),))) == {"uid-of-a"}


def test_what_was_called_back_is_not_taken_for_cordoned_by_somebody_else():
    """Ours goes in this moment; until rows show it the node does not go again, and nobody is asked to uncordon it."""
    queued = a_node_snapshot("a", is_unschedulable=True, upgrade_state="upgrade-required")
    decision = decided(cordoned(a_held_target("a"), queued))

    assert "somebody else" not in decision.waiting_for
