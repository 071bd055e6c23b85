"""A node that failed on the way forward, and of which a person has said: once more. Pure.

It is held, put back into the operator's queue (it leaves upgrade-failed no other way, hazard Z5), and goes in a wave
like any other. What it was compared with before its first try it is compared with again.
"""

from collections.abc import Mapping

from rollouts.components.base import Phase
from rollouts.engine.snapshot import NodeSnapshot, Snapshot, StageSnapshot
from rollouts.gates.base import TargetEvidence
from rollouts.lifecycle import TargetState

IN_VAIN = "Another turn would find the same driver pod, which does not come up: see its log, or delete the pod."


def given_another_try(snapshot: Snapshot) -> Mapping[str, TargetEvidence]:
    """By node. They were let go once: what they do now by themselves is no escape."""
    return {target.uid: target for stage in snapshot.forward for target in stage.targets if target.is_retried}


def waiting(stage: StageSnapshot) -> frozenset[str]:
    """Uids of those that wait for their next turn."""
    return frozenset(target.uid for target in stage.evidence.tried_again)


def waiting_anywhere(snapshot: Snapshot) -> frozenset[str]:
    return frozenset(uid for stage in snapshot.forward for uid in waiting(stage))


def to_queue(snapshot: Snapshot, stage: StageSnapshot) -> dict[str, str]:
    """Held, and still where the operator gave up on them. Not before the label is seen: it would take them at once."""
    uids = waiting(stage)
    stuck = (node for node in snapshot.nodes if node.uid in uids and node.phase is Phase.FAILED and node.is_held)
    return {node.uid: node.name for node in stuck if not snapshot.is_in_sync(node)}


def became_of(snapshot: Snapshot, node: NodeSnapshot, *, is_changed: bool) -> tuple[TargetState, str] | None:
    """Of one that waits for its turn: what it has done by itself, or why it gets none. None: it waits."""
    if node.phase is Phase.FAILED:
        return (TargetState.CHANGING, IN_VAIN) if snapshot.is_in_sync(node) else None  # and failed with the next look
    if node.phase is Phase.AT_WORK or is_changed:
        return TargetState.CHANGING, "The operator has gone on with it by itself."
    return None
