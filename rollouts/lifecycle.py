"""The states of plans, stages, targets and external rollouts, with every allowed move. Pure: no Django, no I/O."""

from collections.abc import Mapping
from enum import StrEnum


class PlanState(StrEnum):
    DRAFT = "draft"  # being written; nothing in any cluster has been touched
    HOLDING = "holding"  # sealed; every node of the driver object is being held, the new version is not written yet
    PROMOTING = "promoting"  # the new version is written: stages are released one after another
    # a gate failed, a node escaped or a person stopped it; released nodes that had not begun are held again
    HALTED = "halted"
    ROLLING_BACK = "rolling-back"  # the old version is restored, and changed nodes roll back in waves
    # the old version is restored, and unchanged nodes are released; changed nodes keep the new driver
    ABORTING = "aborting"
    PROMOTED = "promoted"  # every stage passed
    ROLLED_BACK = "rolled-back"  # every node runs the old version again
    ABORTED = "aborted"  # given up; nodes that had changed are listed, and still held
    DISCARDED = "discarded"  # a draft that was thrown away


class StageState(StrEnum):
    WAITING = "waiting"  # an earlier stage has not passed yet
    OPENING = "opening"  # the stage's turn; gates before its first release are evaluated (approval)
    PROMOTING = "promoting"  # its targets are being released, wave by wave
    SOAKING = "soaking"  # every target has changed; gates are evaluated until the soak is over
    PASSED = "passed"  # every gate passed; the next stage may open
    HALTED = "halted"  # a gate failed or a person stopped it; needs a person
    ABANDONED = "abandoned"  # the plan ended before this stage passed


class TargetState(StrEnum):
    HELD = "held"  # our label keeps the operator from changing it
    RELEASING = "releasing"  # the release is decided and recorded; the label is not seen to be gone yet
    RELEASED = "released"  # the label is gone; the operator has not begun
    CHANGING = "changing"  # the operator is at work on it
    CHANGED = "changed"  # the new version was read from the node itself
    FAILED = "failed"  # did not become healthy; waits for a person (retry or exclusion) or for a rollback
    EXCLUDED = "excluded"  # out of its stage: a person took it out and it stays held, or its node is gone


class ExternalRolloutState(StrEnum):
    """The states of an external rollout. Quarterdeck only evaluates it."""

    STANDING = "standing"  # no change in progress: stores the requested version
    ROLLING = "rolling"  # somebody else changes nodes of it, and gates are asked
    CAME_THROUGH = "came-through"  # every node runs the version, and every gate passed, for as long as a soak
    REPLACED = "replaced"  # the version became another one meanwhile: the new one has its own row
    GIVEN_UP = "given-up"  # no longer evaluated; a reason is stored


PLAN_MOVES: Mapping[PlanState, frozenset[PlanState]] = {
    PlanState.DRAFT: frozenset({PlanState.HOLDING, PlanState.DISCARDED}),
    PlanState.HOLDING: frozenset({PlanState.PROMOTING, PlanState.HALTED, PlanState.ABORTING}),
    PlanState.PROMOTING: frozenset(
        {PlanState.PROMOTED, PlanState.HALTED, PlanState.ROLLING_BACK, PlanState.ABORTING},
    ),
    PlanState.HALTED: frozenset(
        {PlanState.HOLDING, PlanState.PROMOTING, PlanState.ROLLING_BACK, PlanState.ABORTING},
    ),
    PlanState.ROLLING_BACK: frozenset({PlanState.ROLLED_BACK, PlanState.ABORTING}),
    PlanState.ABORTING: frozenset({PlanState.ABORTED}),
    PlanState.PROMOTED: frozenset(),
    PlanState.ROLLED_BACK: frozenset(),
    PlanState.ABORTED: frozenset(),
    PlanState.DISCARDED: frozenset(),
}

STAGE_MOVES: Mapping[StageState, frozenset[StageState]] = {
    StageState.WAITING: frozenset({StageState.OPENING, StageState.ABANDONED}),
    StageState.OPENING: frozenset({StageState.PROMOTING, StageState.HALTED, StageState.ABANDONED}),
    StageState.PROMOTING: frozenset({StageState.SOAKING, StageState.HALTED, StageState.ABANDONED}),
    StageState.SOAKING: frozenset(
        {StageState.PASSED, StageState.PROMOTING, StageState.HALTED, StageState.ABANDONED},
    ),
    StageState.HALTED: frozenset({StageState.OPENING, StageState.PROMOTING, StageState.ABANDONED}),
    StageState.PASSED: frozenset({StageState.HALTED}),  # a gate that leaves PASS while the next stage waits
    StageState.ABANDONED: frozenset(),
}

TARGET_MOVES: Mapping[TargetState, frozenset[TargetState]] = {
    TargetState.HELD: frozenset({TargetState.RELEASING, TargetState.CHANGING, TargetState.EXCLUDED}),
    TargetState.RELEASING: frozenset(
        {TargetState.RELEASED, TargetState.CHANGING, TargetState.HELD, TargetState.EXCLUDED},
    ),
    TargetState.RELEASED: frozenset(
        {TargetState.CHANGING, TargetState.CHANGED, TargetState.HELD, TargetState.FAILED, TargetState.EXCLUDED},
    ),
    TargetState.CHANGING: frozenset(
        {TargetState.CHANGED, TargetState.FAILED, TargetState.HELD, TargetState.EXCLUDED},
    ),
    TargetState.CHANGED: frozenset({TargetState.CHANGING, TargetState.FAILED, TargetState.EXCLUDED}),
    TargetState.FAILED: frozenset(
        {TargetState.HELD, TargetState.CHANGING, TargetState.CHANGED, TargetState.EXCLUDED},
    ),
    TargetState.EXCLUDED: frozenset({TargetState.HELD}),
}

EXTERNAL_ROLLOUT_MOVES: Mapping[ExternalRolloutState, frozenset[ExternalRolloutState]] = {
    ExternalRolloutState.STANDING: frozenset(
        {ExternalRolloutState.ROLLING}
    ),  # a rollout that is no longer followed is forgotten
    ExternalRolloutState.ROLLING: frozenset(
        {ExternalRolloutState.CAME_THROUGH, ExternalRolloutState.REPLACED, ExternalRolloutState.GIVEN_UP}
    ),
    ExternalRolloutState.CAME_THROUGH: frozenset(),
    ExternalRolloutState.REPLACED: frozenset(),
    ExternalRolloutState.GIVEN_UP: frozenset(),
}

PLAN_FINAL = frozenset(state for state, moves in PLAN_MOVES.items() if not moves)
PLAN_UNDER_WAY = frozenset(PlanState) - PLAN_FINAL - {PlanState.DRAFT}
EXTERNAL_ROLLOUT_OPEN = frozenset(state for state, moves in EXTERNAL_ROLLOUT_MOVES.items() if moves)
BEGUN = frozenset({TargetState.CHANGING, TargetState.CHANGED, TargetState.FAILED})  # no longer to be recalled
IN_FLIGHT = frozenset({TargetState.RELEASING, TargetState.RELEASED, TargetState.CHANGING})


def is_lost(target: TargetState, *, is_retried: bool, stage: StageState, is_rollback: bool) -> bool:
    """Returns whether a target with a removed node counts as failed: it was released in a stage in progress.

    A target that waits for its retry counts as well.
    """
    was_released = is_retried or target is not TargetState.HELD
    return was_released and stage is not StageState.PASSED and not is_rollback
