"""The shape and the word that a page gives each state of a plan, a stage, a target and an answer."""

from rollouts.lifecycle import PlanState, StageState, TargetState
from rollouts.models.target import Shown

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
    Shown.NOT_BEGUN: "waiting",
    Shown.BACK: "part",
}
ANSWER_GLYPHS: dict[str, str] = {"pass": "ok", "hold": "waiting", "fail": "stopped"}
GLYPHS: dict[str, dict[str, str]] = {
    "plan": PLAN_GLYPHS,
    "stage": STAGE_GLYPHS,
    "target": TARGET_GLYPHS,
    "answer": ANSWER_GLYPHS,
}


def glyph_of(kind: str, state: str) -> str:
    return GLYPHS[kind].get(state, "unknown")


WORDS: dict[str, str] = {StageState.OPENING: "awaiting approval"}  # where the state's own name says less than people do


def word_of(state: str) -> str:
    return WORDS.get(state, state).replace("-", " ")
