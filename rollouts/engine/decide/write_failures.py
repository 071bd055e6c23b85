"""Reports why the last write to a node failed, and paces its repetition. Pure."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

from rollouts.engine.decide.acts import (
    Act,
    ClearUpgradeState,
    Decision,
    FinishRelease,
    FreeStrays,
    HandOver,
    LiftHolds,
    PlaceHolds,
    Recall,
    RequeueFailed,
)
from rollouts.engine.snapshot import Snapshot
from wording.lists import names

PACE = timedelta(seconds=2)  # asked again at once it would be refused again; a recall must not wait for longer
OF_NODES = (PlaceHolds, LiftHolds, HandOver, FreeStrays, ClearUpgradeState, RequeueFailed)


def with_troubles(snapshot: Snapshot, decision: Decision) -> Decision:
    """Adds write failures to the decision: a lost right or a refusing webhook shows nowhere else."""
    troubles = {node.uid: (node.name, node.trouble) for node in (*snapshot.nodes, *snapshot.strays) if node.trouble}
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
