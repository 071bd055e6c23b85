from rollouts.lifecycle import ExternalRolloutState, PlanState, StageState, TargetState
from rollouts.models import Stage
from rollouts.models.target import Shown
from rollouts.queries.external_rollouts import FAILING, NOT_SHOWN

PLAN_GLYPHS: dict[str, str] = {
    "paused": "cordoned",
    PlanState.DRAFT: "waiting",
    PlanState.HOLDING: "held",
    PlanState.PROMOTING: "changing",
    PlanState.HALTED: "stopped",
    PlanState.ROLLING_BACK: "changing",
    PlanState.ABORTING: "changing",
    PlanState.PROMOTED: "ok",
    PlanState.ROLLED_BACK: "part",
    PlanState.ABORTED: "part",
    PlanState.DISCARDED: "unseen",
}
STAGE_GLYPHS: dict[str, str] = {
    StageState.WAITING: "waiting",
    StageState.OPENING: "unknown",
    StageState.PROMOTING: "changing",
    StageState.SOAKING: "part",
    StageState.PASSED: "ok",
    StageState.HALTED: "stopped",
    StageState.ABANDONED: "unseen",
}
TARGET_GLYPHS: dict[str, str] = {
    TargetState.HELD: "held",
    TargetState.RELEASING: "changing",
    TargetState.RELEASED: "changing",
    TargetState.CHANGING: "changing",
    TargetState.CHANGED: "ok",
    TargetState.FAILED: "bad",
    TargetState.EXCLUDED: "unseen",
    Shown.NOT_HELD: "waiting",
    Shown.NOT_BEGUN: "waiting",
    Shown.BACK: "part",
}
EXTERNAL_ROLLOUT_GLYPHS: dict[str, str] = {
    ExternalRolloutState.ROLLING: "changing",
    FAILING: "stopped",
    NOT_SHOWN: "waiting",
    ExternalRolloutState.CAME_THROUGH: "ok",
    ExternalRolloutState.REPLACED: "part",
    ExternalRolloutState.GIVEN_UP: "unseen",
}
EXTERNAL_ROLLOUT_NODE_GLYPHS: dict[str, str] = {
    "before": "waiting",
    "held": "held",
    "changing": "changing",
    "changed": "ok",
    "failed": "bad",
    "gone": "unseen",
}
ANSWER_GLYPHS: dict[str, str] = {"pass": "ok", "wait": "waiting", "fail": "stopped"}
GLYPHS: dict[str, dict[str, str]] = {
    "plan": PLAN_GLYPHS,
    "stage": STAGE_GLYPHS,
    "target": TARGET_GLYPHS,
    "answer": ANSWER_GLYPHS,
    "external-rollout": EXTERNAL_ROLLOUT_GLYPHS,
    "external-rollout-node": EXTERNAL_ROLLOUT_NODE_GLYPHS,
}


def glyph_of(kind: str, state: str) -> str:
    return GLYPHS[kind].get(state, "unknown")


ASKS, PREPARES = "awaiting approval", "preparing"  # progress of an opening stage


def word_of(state: str) -> str:
    return state.replace("-", " ")


def stage_look(stage: Stage, state: str = "", *, is_approved: bool = False) -> tuple[str, str]:
    """Returns glyph and word of a stage's state. A stage without a pending approval waits for nobody."""
    state = state or stage.state
    if state != StageState.OPENING:
        return glyph_of("stage", state), word_of(state)
    asks = "approval" in stage.gate_options and not is_approved
    return ("unknown", ASKS) if asks else ("changing", PREPARES)
