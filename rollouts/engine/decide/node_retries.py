"""The retry of a failed node, on the way forward, after a person's command. Pure.

The node is held, put back into the operator's queue (it leaves upgrade-failed in no other way, Z5), and released in a
wave like others. Its baseline is the one of the first try.
"""

from collections.abc import Mapping

from rollouts.components.base import Phase
from rollouts.engine.snapshot import NodeSnapshot, Snapshot, StageSnapshot
from rollouts.gates.base import TargetEvidence
from rollouts.lifecycle import TargetState

IN_VAIN = "Another try would find the same driver pod, which does not become Ready. Read its log, or delete the pod."


def retried_targets(snapshot: Snapshot) -> Mapping[str, TargetEvidence]:
    """Returns the targets with a retry by node. They were released once, so their progress is no escape."""
    return {target.uid: target for stage in snapshot.forward for target in stage.targets if target.is_retried}


def waiting(stage: StageSnapshot) -> frozenset[str]:
    return frozenset(target.uid for target in stage.evidence.tried_again)


def waiting_anywhere(snapshot: Snapshot) -> frozenset[str]:
    return frozenset(uid for stage in snapshot.forward for uid in waiting(stage))


def to_queue(snapshot: Snapshot, stage: StageSnapshot) -> dict[str, str]:
    """Returns held nodes in upgrade-failed.

    A node whose label is not seen yet is left out: the operator would take it at once.
    """
    uids = waiting(stage)
    stuck = (node for node in snapshot.nodes if node.uid in uids and node.phase is Phase.FAILED and node.is_held)
    return {node.uid: node.name for node in stuck if not snapshot.templates.is_in_sync(node)}


def retry_progress(snapshot: Snapshot, node: NodeSnapshot, *, is_changed: bool) -> tuple[TargetState, str] | None:
    """Returns the new state of a node that waits for its retry, with the reason; None if it still waits."""
    if node.phase is Phase.FAILED:
        return (
            (TargetState.CHANGING, IN_VAIN) if snapshot.templates.is_in_sync(node) else None
        )  # and failed with the next look
    if node.phase is Phase.AT_WORK or is_changed:
        return TargetState.CHANGING, "The operator has continued with the node by itself."
    return None
