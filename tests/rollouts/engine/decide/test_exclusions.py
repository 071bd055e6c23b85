"""Z17, Z18: for how long controllers are kept off a node, and what waits until they are not."""

from datetime import timedelta

import pytest

from rollouts.engine.decide import decide
from rollouts.engine.decide.acts import Decision, ExcludeAgain, MovePlan, MoveStage, PutBack
from rollouts.engine.snapshot import NodeExclusions, NodeSnapshot, Snapshot
from rollouts.gates.base import TargetEvidence
from rollouts.gates.soak import Soak
from rollouts.lifecycle import PlanState, StageState, TargetState
from tests.make import NOON
from tests.rollouts.make import (
    a_changed_node,
    a_held_target,
    a_node_snapshot,
    a_snapshot,
    a_stage,
    a_target,
    evidence,
    put_back,
)

OFF = NodeExclusions("a", ("NVSentinel",))


def decided(snapshot: Snapshot) -> Decision:
    return decide(snapshot, now=NOON)


def back(decision: Decision) -> dict[str, str]:
    return {uid: name for act in decision.acts if isinstance(act, PutBack) for uid, name in act.nodes.items()}


def again(decision: Decision) -> list[str]:
    return [name for act in decision.acts if isinstance(act, ExcludeAgain) for name in act.nodes.values()]


def released_node(**given) -> NodeSnapshot:
    return a_node_snapshot("a", has_label=False, label_is_ours=False, hold_wanted=False, **given)


def at_work() -> NodeSnapshot:
    return released_node(upgrade_state="drain-required")


def off(target: TargetEvidence, node: NodeSnapshot, one: NodeExclusions = OFF, **given) -> Snapshot:
    return a_snapshot(a_stage(target), nodes=(node,), exclusions={"uid-of-a": one}, **given)


@pytest.mark.parametrize("state", [TargetState.RELEASING, TargetState.RELEASED, TargetState.CHANGING])
@pytest.mark.parametrize("plan", [PlanState.PROMOTING, PlanState.HALTED])
def test_what_is_in_the_operators_hands_stays_as_it_is(state: TargetState, plan: PlanState):
    snapshot = off(a_held_target("a", state=state, upgrade_state="drain-required"), at_work(), state=plan)

    assert back(decided(snapshot)) == {}


def test_a_node_that_is_back_in_order_is_put_back_though_its_stage_goes_on():
    stage = a_stage(a_target("a"), a_held_target("b"))
    nodes = (a_changed_node("a"), a_node_snapshot("b"))

    decision = decided(a_snapshot(stage, nodes=nodes, exclusions={"uid-of-a": OFF}))

    assert back(decision) == {"uid-of-a": "a"}


def test_a_changed_node_on_which_something_still_comes_up_is_not_looked_at_yet():
    """DCGM does not answer yet, which NVSentinel would take for a fault."""
    decision = decided(off(a_target("a", operands=()), a_changed_node("a")))

    assert back(decision) == {}
    assert decision.moves == ()
    assert decision.waiting_for == (
        "Stage 0 soaks once the exclusion of a from NVSentinel ends: when it is healthy again, in 10 min at most."
    )


def test_what_does_not_come_up_in_time_is_a_fault_that_they_should_see():
    target = a_target("a", operands=(), state_since=NOON - timedelta(minutes=11))

    assert back(decided(off(target, a_changed_node("a")))) == {"uid-of-a": "a"}


def test_a_stage_does_not_soak_before_all_is_read_back():
    decision = decided(off(a_target("a"), a_changed_node("a")))

    assert decision.moves == ()
    assert back(decision) == {"uid-of-a": "a"}
    assert decision.waiting_for == "Stage 0 soaks once the exclusion of a from NVSentinel is removed."


def test_why_it_cannot_be_put_back_is_said():
    one = NodeExclusions("a", ("NVSentinel",), is_wanted=False, trouble="nodes a is forbidden.")

    assert decided(off(a_target("a"), a_changed_node("a"), one)).waiting_for.endswith(
        "is removed. nodes a is forbidden."
    )


def test_then_it_soaks():
    decision = decided(a_snapshot(a_stage(a_target("a")), nodes=(a_changed_node("a"),)))

    assert [move.to for move in decision.moves if isinstance(move, MoveStage)] == [StageState.SOAKING]


def test_what_keeps_them_off_nodes_of_another_stage_holds_no_soak_up():
    first, second = a_stage(a_target("b")), a_stage(a_target("a"), index=1, state=StageState.WAITING)
    nodes = (a_changed_node("b"), a_changed_node("a"))

    decision = decided(a_snapshot(first, second, nodes=nodes, exclusions={"uid-of-a": OFF}))

    assert [move.to for move in decision.moves if isinstance(move, MoveStage)] == [StageState.SOAKING]


@pytest.mark.parametrize("state", [TargetState.HELD, TargetState.FAILED, TargetState.EXCLUDED])
@pytest.mark.parametrize("plan", [PlanState.PROMOTING, PlanState.HALTED])
def test_what_is_held_again_failed_or_was_taken_out_is_put_back(state: TargetState, plan: PlanState):
    upgrade_state = "upgrade-failed" if state is TargetState.FAILED else "upgrade-required"
    node = a_node_snapshot("a", upgrade_state=upgrade_state)

    snapshot = off(a_held_target("a", state=state, upgrade_state=upgrade_state), node, state=plan)

    assert back(decided(snapshot)) == {"uid-of-a": "a"}


def test_what_is_not_wanted_any_more_is_put_back_until_it_is_read_back():
    one = NodeExclusions("a", ("NVSentinel",), is_wanted=False)

    assert back(decided(off(a_held_target("a", state=TargetState.CHANGING), at_work(), one))) == {"uid-of-a": "a"}


@pytest.mark.parametrize("plan", [PlanState.PROMOTING, PlanState.HALTED, PlanState.ROLLING_BACK, PlanState.ABORTING])
def test_a_node_that_left_the_object_is_put_back(plan: PlanState):
    snapshot = a_snapshot(
        a_stage(a_held_target("b")), nodes=(a_node_snapshot("b"),), state=plan, exclusions={"uid-of-a": OFF}
    )

    assert back(decided(snapshot)) == {"uid-of-a": "a"}


def test_while_the_object_has_no_daemonset_nobody_has_left_it():
    stage = a_stage(a_held_target("a", state=TargetState.CHANGING))

    assert back(decided(a_snapshot(stage, newest_hashes={}, exclusions={"uid-of-a": OFF}))) == {}


@pytest.mark.parametrize("plan", [PlanState.ROLLING_BACK, PlanState.ABORTING])
def test_who_goes_back_waits_for_what_the_operator_works_on(plan: PlanState):
    """Nobody follows the targets of the way forward any more."""
    changing = off(a_held_target("a", state=TargetState.CHANGING), at_work(), state=plan)
    through = off(a_held_target("a", state=TargetState.CHANGING), a_node_snapshot("a"), state=plan)

    assert back(decided(changing)) == {}
    assert back(decided(through)) == {"uid-of-a": "a"}


def test_no_plan_ends_before_all_is_read_back():
    snapshot = put_back(a_snapshot(a_stage(a_held_target("a"))), exclusions={"uid-of-a": OFF})

    decision = decided(snapshot)

    assert not [move for move in decision.moves if isinstance(move, MovePlan)]
    assert not decision.is_for_good
    assert decision.waiting_for == "The plan ends once the exclusion of a from NVSentinel is removed."


def test_that_all_is_put_back_is_said_of_a_list_of_every_node_only():
    ended = put_back(
        a_snapshot(a_stage(a_held_target("a"))),
        exclusions_ended={"a": ("NVSentinel",), "b": ("Karpenter", "NVSentinel")},
    )

    on_rows = decided(ended).waiting_for
    live = decided(
        put_back(ended, is_live=True, exclusions_left=("c: it is true: another owner changed it, so it stays.",))
    )

    assert "put back" not in on_rows
    (end,) = [move for move in live.moves if isinstance(move, MovePlan)]
    assert end.reason.endswith(
        "The exclusion of a, b from Karpenter, NVSentinel is removed. c: it is true: another owner changed it, "
        "so it stays."
    )


def test_what_nobody_has_read_back_is_written_again():
    one = NodeExclusions("a", ("NVSentinel",), is_placed=False)
    target = a_held_target("a", state=TargetState.CHANGING)

    assert again(decided(off(target, at_work(), one))) == ["a"]
    assert again(decided(off(target, at_work()))) == []
    assert again(decided(off(a_held_target("a", state=TargetState.RELEASING), a_node_snapshot("a"), one))) == []


def test_the_soak_waits_for_their_eyes():
    seen = evidence(a_target("a"), others_passing_since=NOON - timedelta(hours=1), exclusions={"a": ("NVSentinel",)})

    answer = Soak().evaluate(seen, now=NOON)

    assert answer.answer == "wait"
    assert answer.sentence == "The soak has not begun. NVSentinel must be allowed on a again."
