"""Frees nodes that left the driver object while held; nothing drives their upgrades now. Pure."""

from rollouts.engine.decide.acts import Decision, ReleaseUnmanagedNodes
from rollouts.engine.decide.releases import SOON
from rollouts.engine.snapshot import Snapshot
from wording.numbers import count

ABORT_FREES = "Abort ends the plan and removes all holds."  # of a plan whose driver object is gone


def release_unmanaged_nodes(snapshot: Snapshot) -> Decision | None:
    """Frees unmanaged nodes; None if there are none.

    A returning node gets a new driver pod of the newest template, held or not (Z4), so the label protects nothing. A
    node that moved to another driver object stays held if that object would change it at once: this plan may not
    release it to a foreign version (Z38).
    """
    unmanaged_nodes = {node.uid: node.name for node in snapshot.unmanaged_nodes if not node.is_of_another}
    if not unmanaged_nodes:
        return None
    sentence = f"Releasing {count(len(unmanaged_nodes), 'node')} that the driver object no longer selects."
    return Decision(sentence, acts=(ReleaseUnmanagedNodes(unmanaged_nodes),), look_again_in=SOON)
