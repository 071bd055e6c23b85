"""Ask the gates of a stage. Failing closed is done here, once, and not in each gate. Pure."""

from collections.abc import Mapping
from datetime import datetime

from rollouts.engine.snapshot import StageSnapshot
from rollouts.gates.base import Answer, Gate, Judgement, When, wait
from wording.lists import names


def judge(stage: StageSnapshot, when: When, *, now: datetime) -> dict[str, Judgement]:
    """Every gate's answer. A gate that passes while something it was to judge cannot be seen does not pass."""
    return {gate.key: _ask(gate, stage, now=now) for gate in stage.gates if gate.when is when}


def _ask(gate: Gate, stage: StageSnapshot, *, now: datetime) -> Judgement:
    judgement = gate.judge(stage.evidence, now=now)
    if judgement.answer is not Answer.PASS or gate.when is When.ENTRY:
        return judgement
    if not stage.evidence.counted:
        return wait("The stage has no target left: there is nothing this could be judged on.")
    unseen = tuple(target.name for target in stage.evidence.counted if not target.is_seen)
    if unseen:
        return wait(f"{names(unseen)} cannot be seen: unknown is not a pass.", nodes=unseen)
    return judgement


def first(answer: Answer, judgements: Mapping[str, Judgement]) -> tuple[str, Judgement] | None:
    return next(((key, judgement) for key, judgement in judgements.items() if judgement.answer is answer), None)


def all_pass(stage: StageSnapshot, judgements: Mapping[str, Judgement]) -> bool:
    """Whether the stage may pass. A stage with no gate never does."""
    through = {gate.key for gate in stage.gates if gate.when is When.THROUGH}
    return bool(through) and all(key in judgements and judgements[key].answer is Answer.PASS for key in through)
