"""An overridden gate blocks nothing, and is still evaluated and shown."""

import pytest

from rollouts.engine.decide import decide
from rollouts.engine.decide.acts import Decision, MovePlan, MoveStage
from rollouts.gates.approval import ApprovalGate
from rollouts.gates.base import NEVER_OVERRIDDEN, Answer
from rollouts.gates.driver_version import DriverVersion
from rollouts.gates.failure_budget import FailureBudget
from rollouts.gates.operands_ready import OperandsReady
from rollouts.lifecycle import PlanState, StageState, TargetState
from tests.make import NOON
from tests.rollouts.make import (
    a_changed_node,
    a_held_target,
    a_node_snapshot,
    a_rollback_stage,
    a_snapshot,
    a_stage,
    a_target,
    an_approval,
    evidence,
    put_back,
)

LOST = a_target("a", is_ready=False)
OVERRIDDEN = {"gates": (DriverVersion(), FailureBudget()), "overridden": frozenset({"failure_budget"})}


def decided(stage, *nodes, **given) -> Decision:
    return decide(a_snapshot(stage, nodes=nodes, **given), now=NOON)


def stage_moves(decision: Decision) -> list[StageState]:
    return [move.to for move in decision.moves if isinstance(move, MoveStage)]


def test_a_failing_gate_that_is_overridden_halts_nothing_and_lets_the_stage_pass():
    stage = a_stage(LOST, state=StageState.SOAKING, **OVERRIDDEN)

    decision = decided(stage, a_changed_node("a", is_ready=False))

    assert decision.results[0]["failure_budget"].answer is Answer.FAIL
    assert stage_moves(decision) == [StageState.PASSED]


def test_without_it_the_same_halts():
    stage = a_stage(LOST, state=StageState.SOAKING, gates=(DriverVersion(), FailureBudget()))

    assert stage_moves(decided(stage, a_changed_node("a", is_ready=False))) == [StageState.HALTED]


def test_a_gate_of_another_name_still_halts():
    gates = (OperandsReady(), DriverVersion(), FailureBudget())
    stage = a_stage(LOST, state=StageState.SOAKING, gates=gates, overridden=frozenset({"operands_ready"}))

    assert stage_moves(decided(stage, a_changed_node("a", is_ready=False))) == [StageState.HALTED]


def test_an_approval_that_is_overridden_opens_its_stage():
    stage = a_stage(
        a_held_target("a"), state=StageState.OPENING, gates=(ApprovalGate(), DriverVersion()),
        overridden=frozenset({"approval"}),
    )  # fmt: skip

    assert stage_moves(decided(stage, a_node_snapshot("a"))) == [StageState.PROMOTING]


def test_a_no_is_not_overridden():
    shown = evidence(a_held_target("a"), approvals=(an_approval("amy", is_rejection=True, reason="Month end."),))
    stage = a_stage(
        a_held_target("a"), state=StageState.OPENING, gates=(ApprovalGate(), DriverVersion()), evidence=shown,
        overridden=frozenset({"approval"}),
    )  # fmt: skip

    decision = decided(stage, a_node_snapshot("a"))

    assert [move.to for move in decision.moves if isinstance(move, MovePlan)] == [PlanState.HALTED]


@pytest.mark.parametrize("targets", [(a_target("a", is_seen=False),), (a_target("a", state=TargetState.EXCLUDED),)])
def test_what_is_not_seen_or_not_there_is_not_overridden(targets):
    stage = a_stage(
        *targets, state=StageState.SOAKING, gates=(DriverVersion(),), overridden=frozenset({"driver_version"})
    )

    decision = decided(stage, a_changed_node("a"))

    assert decision.results[0]["driver_version"].cause in NEVER_OVERRIDDEN
    assert stage_moves(decision) == []


def test_in_a_rollback_a_failing_gate_only_warns():
    """Z32."""
    back = a_rollback_stage(
        a_target("a", driver_version="570.172.08", is_ready=False), state=StageState.SOAKING,
        gates=(DriverVersion(), FailureBudget()),
    )  # fmt: skip
    node = a_changed_node("a", driver_version="570.172.08", pod_hash="hash-old", is_ready=False)

    decision = decide(put_back(a_snapshot(a_stage(), back, nodes=(node,))), now=NOON)

    assert [move.to for move in decision.moves if isinstance(move, MovePlan)] == [PlanState.ROLLED_BACK]
    assert "a gate fails" in decision.waiting_for
