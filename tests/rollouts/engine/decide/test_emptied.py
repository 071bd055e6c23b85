"""A stage without a node never passes: a person is asked at once, and told what they can do."""

import pytest

from rollouts.engine.decide import decide
from rollouts.engine.decide.acts import Decision
from rollouts.engine.snapshot import Snapshot
from rollouts.gates.failure_budget import FailureBudget
from rollouts.gates.soak import Soak
from rollouts.lifecycle import StageState, TargetState
from tests.make import NOON
from tests.rollouts.make import a_changed_node, a_node_snapshot, a_snapshot, a_stage, a_target

GATES = (FailureBudget(tolerate=1), Soak())


def out(name: str = "out", state: TargetState = TargetState.EXCLUDED):
    return a_target(name, state=state)


def passed(*targets, index: int = 0):
    return a_stage(*targets, index=index, name="Canary", state=StageState.PASSED, gates=GATES)


def last(*targets, state: StageState = StageState.SOAKING):
    return a_stage(*targets, index=1, name="Rest", state=state, gates=GATES)


def decided(snapshot: Snapshot) -> Decision:
    return decide(snapshot, now=NOON)


NODES = (a_changed_node("a"), a_node_snapshot("out"), a_node_snapshot("b"))


@pytest.mark.parametrize("state", [StageState.OPENING, StageState.SOAKING])
def test_of_the_last_stage_it_is_said_at_once_that_the_plan_can_end_without_it(state: StageState):
    decision = decided(a_snapshot(passed(a_target("a")), last(out(), state=state), nodes=NODES))

    assert decision.pause_reason == decision.waiting_for
    assert decision.waiting_for == (
        "Rest has no node left to evaluate: 1 node was excluded or left the cluster. A person decides: complete "
        "the plan without the stage, roll back or abort."
    )
    assert not decision.moves


def test_nodes_that_failed_are_told_from_those_that_were_taken_out():
    failed = a_target("b", state=TargetState.FAILED)

    decision = decided(a_snapshot(passed(a_target("a")), last(out("c"), out(), failed), nodes=NODES))

    assert "evaluate: 2 nodes were excluded or left the cluster, and 1 node failed. A person" in decision.waiting_for


def test_with_a_stage_to_come_the_plan_is_not_said_to_end_without_it():
    soaking = a_stage(out(), name="Canary", state=StageState.SOAKING, gates=GATES)

    decision = decided(a_snapshot(soaking, last(a_target("b", state=TargetState.HELD), state=StageState.WAITING)))

    assert decision.pause_reason.endswith("A person decides: roll back or abort.")


def test_one_that_has_passed_and_lost_its_nodes_since_lets_no_other_begin():
    decision = decided(a_snapshot(passed(out()), last(a_target("b", state=TargetState.HELD), state=StageState.OPENING)))

    assert decision.pause_reason.startswith("Rest waits: Canary has no node left to evaluate:")
    assert not decision.moves


def test_neither_does_the_plan_end_on_it():
    decision = decided(a_snapshot(passed(out()), nodes=NODES))

    assert decision.pause_reason == (
        "Every stage passed, except: Canary has no node left to evaluate: 1 node was excluded or left the "
        "cluster. A person decides: roll back or abort."
    )
    assert not decision.moves
