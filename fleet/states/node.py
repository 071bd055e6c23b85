"""What a node looks like at a glance: one code, the same on the map, in the table and in live messages. Pure.

The worst thing that is true of it wins. `fleet/models/state_column.py` says the same to the database. A
cluster that cannot be seen is not told here: that is its bookmarks' to say.
"""

from datetime import timedelta
from enum import IntEnum


class NodeState(IntEnum):
    """In the order in which lists show them: the worst first. `static/js/map-*.js` know the numbers."""

    UPGRADE_FAILED = 0
    NOT_READY = 1
    UNKNOWN = 2  # its kubelet stopped reporting
    GPUS_MISSING = 3  # fewer can be allocated than were ever there
    HAS_FINDINGS = 4  # nothing of the node itself says so, and yet something is wrong on it: its pods fail, …
    UPGRADING = 5  # the upgrade controller is at work on it
    RECONFIGURING = 6  # the MIG manager is at work on it: its GPUs are away for a reason
    CORDONED = 7
    HELD = 8  # ready, and kept from the upgrade controller
    READY = 9


FAULTS = frozenset(state for state in NodeState if state <= NodeState.HAS_FINDINGS)


TITLES: dict[NodeState, str] = {
    NodeState.UPGRADE_FAILED: "Upgrade failed",
    NodeState.NOT_READY: "Not ready",
    NodeState.UNKNOWN: "Not reporting",
    NodeState.GPUS_MISSING: "GPUs missing",
    NodeState.HAS_FINDINGS: "Has findings",
    NodeState.UPGRADING: "Upgrading",
    NodeState.RECONFIGURING: "Reconfiguring",
    NodeState.CORDONED: "Cordoned",
    NodeState.HELD: "Held",
    NodeState.READY: "Ready",
}


def state_key(state: NodeState) -> str:
    """How an address names a state: not-ready, gpus-missing."""
    return state.name.lower().replace("_", "-")


STATE_KEYS = {state_key(state): int(state) for state in TITLES}

# Neither at work on the node nor about to be: `upgrade-required` waits for a slot, or for a held node's release.
AT_REST = frozenset({"", "upgrade-done", "upgrade-required", "upgrade-failed"})
# While nvidia.com/mig.config.state is one of these (mig-parted, pkg/mig/reconfigure/reconfigure.go), the MIG manager
# has stopped the device plugin. It does so for minutes; one that gave up leaves `pending` there for ever
# (gpu-operator #2833), so that what is away for longer is missing after all.
REBOOTING = "rebooting"
RECONFIGURING = frozenset({"pending", REBOOTING})
RECONFIGURED_WITHIN = timedelta(minutes=20)


def node_state(
    *,
    is_ready: bool | None,
    is_unschedulable: bool,
    upgrade_state: str,
    is_held: bool,
    gpus_missing: int,
    reconfiguring: str = "",
    unresolved: int = 0,
) -> NodeState:
    """`reconfiguring`: the MIG manager's word while it is at work in its time; blank: it is not.
    `unresolved`: findings about it, confirmed or not.
    """
    if upgrade_state == "upgrade-failed":
        return NodeState.UPGRADE_FAILED
    if reconfiguring == REBOOTING:
        return NodeState.RECONFIGURING
    if is_ready is None:
        return NodeState.UNKNOWN
    if not is_ready:
        return NodeState.NOT_READY
    if upgrade_state not in AT_REST:
        return NodeState.UPGRADING
    if reconfiguring:
        return NodeState.RECONFIGURING
    if gpus_missing:
        return NodeState.GPUS_MISSING
    if unresolved:
        return NodeState.HAS_FINDINGS
    if is_unschedulable:
        return NodeState.CORDONED
    return NodeState.HELD if is_held else NodeState.READY
