"""Reports why the last write to a node failed, and paces its repetition. Pure."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

from rollouts.engine.decide.acts import (
    Act,
    ClearUpgradeState,
    Decision,
    FinishRelease,
    HandOver,
    LiftHolds,
    PlaceHolds,
    Recall,
    ReleaseUnmanagedNodes,
    RequeueFailed,
)
from rollouts.engine.snapshot import Snapshot, StageSnapshot
from rollouts.lifecycle import StageState, TargetState
from wording.lists import names
from wording.numbers import count, was

PACE = timedelta(seconds=2)  # asked again at once it would be refused again; a recall must not wait for longer
OF_NODES = (PlaceHolds, LiftHolds, HandOver, ReleaseUnmanagedNodes, ClearUpgradeState, RequeueFailed)


def with_troubles(snapshot: Snapshot, decision: Decision) -> Decision:
    """Adds write failures to the decision: a lost right or a refusing webhook shows nowhere else."""
    troubles = {
        node.uid: (node.name, node.trouble) for node in (*snapshot.nodes, *snapshot.unmanaged_nodes) if node.trouble
    }
    uids = [uid for act in decision.acts for uid in _written(snapshot, act)]
    stuck = sorted(troubles[uid] for uid in uids if uid in troubles)
    if not stuck:
        return decision
    said = f"{names([name for name, _ in stuck])} could not be written: {stuck[0][1].rstrip('.')}."
    pace = PACE if len(stuck) == len(uids) else decision.look_again_in
    return replace(
        decision,
        waiting_for=f"{decision.waiting_for} {said}",
        look_again_in=max(decision.look_again_in, pace),
    )


def _written(snapshot: Snapshot, act: Act) -> Iterator[str]:
    """Yields the UIDs of the nodes that an act writes and may have tried before."""
    if isinstance(act, OF_NODES):
        yield from act.nodes
    elif isinstance(act, FinishRelease | Recall):
        targets = next(stage.targets for stage in snapshot.stages if stage.index == act.stage_index)
        yield from (target.uid for target in targets if target.name in act.targets)


OVER = (StageState.PASSED, StageState.ABANDONED)


def nobody_left(snapshot: Snapshot, stage: StageSnapshot, *, says: str = "") -> Decision | None:
    """Asks a person at once if the stage has no node left; None if it has. `says` is the sentence before."""
    if stage.evidence.counted:
        return None
    left = f"{stage.name} has no node left to evaluate: {_why(stage)}."
    asks = f"{says} {left} A person decides: {_choices(snapshot, stage)}.".strip()
    return Decision(asks, pause_reason=asks)


def _why(stage: StageSnapshot) -> str:
    out, failed = len(stage.in_state(TargetState.EXCLUDED)), len(stage.in_state(TargetState.FAILED))
    parts = (
        f"{count(out, 'node')} {was(out)} excluded or left the cluster" if out else "",
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
    return f"{'complete the plan without the stage, ' if can_complete else ''}roll back or abort"
