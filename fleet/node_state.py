"""What a node looks like at a glance: one code, the same on the map, in the table and in live messages. Pure.

The worst thing that is true of it wins. A cluster that cannot be seen is not told here: that is its bookmarks' to say.
"""

from enum import IntEnum


class NodeState(IntEnum):
    READY = 0
    UNKNOWN = 1  # its kubelet stopped reporting
    NOT_READY = 2
    UPGRADE_FAILED = 3
    GPUS_MISSING = 4  # fewer can be allocated than were ever there
    UPGRADING = 5  # the upgrade controller is at work on it
    CORDONED = 6
    HELD = 7  # ready, and kept from the upgrade controller


TITLES: dict[NodeState, str] = {
    NodeState.READY: "Ready",
    NodeState.UNKNOWN: "Not reporting",
    NodeState.NOT_READY: "Not ready",
    NodeState.UPGRADE_FAILED: "Upgrade failed",
    NodeState.GPUS_MISSING: "GPUs missing",
    NodeState.UPGRADING: "Upgrading",
    NodeState.CORDONED: "Cordoned",
    NodeState.HELD: "Held",
}

# Neither at work on the node nor about to be: `upgrade-required` waits for a slot, or for a held node's release.
AT_REST = frozenset({"", "upgrade-done", "upgrade-required", "upgrade-failed"})


def node_state(
    *,
    is_ready: bool | None,
    is_unschedulable: bool,
    upgrade_state: str,
    is_held: bool,
    gpus_missing: int,
) -> NodeState:
    if upgrade_state == "upgrade-failed":
        return NodeState.UPGRADE_FAILED
    if is_ready is None:
        return NodeState.UNKNOWN
    if not is_ready:
        return NodeState.NOT_READY
    if upgrade_state not in AT_REST:
        return NodeState.UPGRADING
    if gpus_missing:
        return NodeState.GPUS_MISSING
    if is_unschedulable:
        return NodeState.CORDONED
    return NodeState.HELD if is_held else NodeState.READY
