"""A stage without any node to evaluate never passes, and waiting does not change that. Pure."""

from rollouts.engine.decide.acts import Decision
from rollouts.engine.snapshot import Snapshot, StageSnapshot
from rollouts.lifecycle import StageState, TargetState
from wording.numbers import count, was

OVER = (StageState.PASSED, StageState.ABANDONED)


def nobody_left(snapshot: Snapshot, stage: StageSnapshot, *, says: str = "") -> Decision | None:
    """Asks a person at once if the stage has no node left; None if it has. `says` is the sentence before."""
    if stage.evidence.counted:
        return None
    left = f"{stage.name} has no node left that it could be judged on: {_why(stage)}."
    asks = f"{says} {left} A person decides: {_choices(snapshot, stage)}.".strip()
    return Decision(asks, pause_reason=asks)


def _why(stage: StageSnapshot) -> str:
    out, failed = len(stage.in_state(TargetState.EXCLUDED)), len(stage.in_state(TargetState.FAILED))
    parts = (
        f"{count(out, 'node')} {was(out)} taken out or went away" if out else "",
        f"{count(failed, 'node')} failed" if failed else "",
    )
    return ", and ".join(part for part in parts if part) or "it never had any"


def _choices(snapshot: Snapshot, stage: StageSnapshot) -> str:
    """Returns the choices.

    A plan may end without its last stage if an earlier stage has changed nodes (rollouts/queries/completion.py).
    """
    is_last = all(other.state in OVER for other in snapshot.forward if other.index != stage.index)
    has_changed = any(other.in_state(TargetState.CHANGED) for other in snapshot.forward)
    can_complete = is_last and has_changed and stage.state is not StageState.PASSED
    return f"{'complete the plan without it, ' if can_complete else ''}roll back or abort"
