"""Evaluates the gates of a stage, and fails closed in one place. Pure."""

from collections.abc import Mapping
from datetime import datetime

from rollouts.engine.snapshot import StageSnapshot
from rollouts.gates.base import NEVER_PASSED_OVER, NO_TARGET, UNSEEN, Answer, Gate, Judgement, When, wait
from wording.durations import spell
from wording.lists import names


def judge(stage: StageSnapshot, *whens: When, now: datetime) -> dict[str, Judgement]:
    """Returns the result of every gate. A gate that passes although some of its evidence is missing does not pass."""
    return {gate.key: _ask(gate, stage, now=now) for gate in stage.gates if gate.when in whens}


def _ask(gate: Gate, stage: StageSnapshot, *, now: datetime) -> Judgement:
    judgement = gate.judge(stage.evidence, now=now)
    if judgement.answer is not Answer.PASS or gate.when is not When.THROUGH:
        return judgement
    if not stage.evidence.counted:
        return wait("The stage has no target left: there is nothing this could be judged on.", cause=NO_TARGET)
    unseen = tuple(target.name for target in stage.evidence.counted if not target.is_seen)
    if unseen:
        return wait(f"{names(unseen)} cannot be seen: unknown is not a pass.", cause=UNSEEN, nodes=unseen)
    return judgement


def counted(stage: StageSnapshot, judgements: Mapping[str, Judgement]) -> dict[str, Judgement]:
    """Returns the results that may halt, hold or pass the stage: without advisory gates and gates under an override."""
    advisory = {gate.key for gate in stage.gates if gate.advisory}
    left = {key: judgement for key, judgement in judgements.items() if key not in advisory}
    return {key: judgement for key, judgement in left.items() if not is_passed_over(stage, key, judgement)}


def is_passed_over(stage: StageSnapshot, key: str, judgement: Judgement) -> bool:
    return key in stage.glass and judgement.cause not in NEVER_PASSED_OVER


def out_of_patience(stage: StageSnapshot, key: str, *, now: datetime) -> str:
    """Returns for how long a gate has waited, once that exceeds its timeout; empty means it has not.

    The wait begins with the gate's first WAIT, the stage's last change of state, or the last resume, whichever is
    latest.
    """
    patience = next((gate.patience for gate in stage.gates if gate.key == key), None) or stage.patience
    since = max(stage.state_since, stage.waiting_since.get(key, stage.state_since))
    return spell(patience) if now - since > patience else ""


def first(answer: Answer, judgements: Mapping[str, Judgement]) -> tuple[str, Judgement] | None:
    return next(((key, judgement) for key, judgement in judgements.items() if judgement.answer is answer), None)


def all_pass(stage: StageSnapshot, judgements: Mapping[str, Judgement]) -> bool:
    """Returns whether the stage may pass. A stage without a gate that counts never passes."""
    through = {gate.key for gate in stage.gates if gate.when is When.THROUGH and not gate.advisory}
    asked = all(key in judgements for key in through)
    return (
        bool(through)
        and asked
        and all(judgements[key].answer is Answer.PASS or is_passed_over(stage, key, judgements[key]) for key in through)
    )
