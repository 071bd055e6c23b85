from enum import StrEnum

import pytest

from rollouts.lifecycle import (
    BEGUN,
    EXTERNAL_ROLLOUT_MOVES,
    IN_FLIGHT,
    PLAN_FINAL,
    PLAN_MOVES,
    PLAN_UNDER_WAY,
    STAGE_MOVES,
    TARGET_MOVES,
    ExternalRolloutState,
    PlanState,
    StageState,
    TargetState,
)

TABLES = [
    (PlanState, PLAN_MOVES, PlanState.DRAFT),
    (StageState, STAGE_MOVES, StageState.WAITING),
    (TargetState, TARGET_MOVES, TargetState.HELD),
    (ExternalRolloutState, EXTERNAL_ROLLOUT_MOVES, ExternalRolloutState.STANDING),
]
BY_NAME = {"ids": ["plan", "stage", "target", "external rollout"]}


@pytest.mark.parametrize(("states", "moves", "_start"), TABLES, **BY_NAME)
def test_every_state_has_a_row(states: type[StrEnum], moves, _start):
    assert set(moves) == set(states)


@pytest.mark.parametrize(("states", "moves", "_start"), TABLES, **BY_NAME)
def test_no_state_moves_to_itself(states: type[StrEnum], moves, _start):
    assert not [state for state in states if state in moves[state]]


@pytest.mark.parametrize(("states", "moves", "start"), TABLES, **BY_NAME)
def test_every_state_can_be_reached(states: type[StrEnum], moves, start):
    reached, ahead = {start}, [start]
    while ahead:
        found = moves[ahead.pop()] - reached
        reached |= found
        ahead += found

    assert reached == set(states)


def test_plans_end_where_no_move_leads_out():
    assert {
        PlanState.PROMOTED,
        PlanState.ROLLED_BACK,
        PlanState.ABORTED,
        PlanState.DISCARDED,
    } == PLAN_FINAL


@pytest.mark.parametrize("state", sorted(PLAN_UNDER_WAY))
def test_a_plan_under_way_can_be_given_up(state: PlanState):
    """Abort is legal from every state that is not final (design: Promoting)."""
    assert state is PlanState.ABORTING or PlanState.ABORTING in PLAN_MOVES[state]


@pytest.mark.parametrize("state", sorted(PLAN_UNDER_WAY))
def test_a_plan_under_way_can_end(state: PlanState):
    reached, ahead = {state}, [state]
    while ahead:
        found = PLAN_MOVES[ahead.pop()] - reached
        reached |= found
        ahead += found

    assert reached & PLAN_FINAL


@pytest.mark.parametrize("state", sorted({*StageState} - {StageState.PASSED, StageState.ABANDONED}))
def test_a_stage_that_has_not_passed_can_be_abandoned(state: StageState):
    assert StageState.ABANDONED in STAGE_MOVES[state]


def test_a_target_is_never_changed_without_having_been_let_go():
    assert not TARGET_MOVES[TargetState.HELD] & {TargetState.CHANGED, TargetState.FAILED, TargetState.RELEASED}


def test_what_has_begun_is_held_back_only_where_the_operator_has_let_go_of_it():
    """A label cannot stop the operator once it works on a node (hazard Z3). It may have failed, or be queued anew."""
    may_be_held = {state for state in BEGUN if TargetState.HELD in TARGET_MOVES[state]}
    assert may_be_held == {TargetState.FAILED, TargetState.CHANGING}


def test_in_flight_is_what_takes_the_budget():
    assert {TargetState.RELEASING, TargetState.RELEASED, TargetState.CHANGING} == IN_FLIGHT
