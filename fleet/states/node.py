"""The state of a node as one code, for map, table and live messages. Pure.

The worst true condition counts. `fleet/models/state_column.py` is the SQL equivalent. Bookmarks tell whether the
cluster is observed.
"""

from datetime import timedelta
from enum import IntEnum


class NodeState(IntEnum):
    """Node states, the worst first, as lists sort them. `static/js/map-*.js` use the numbers."""

    UPGRADE_FAILED = 0
    NOT_READY = 1
    UNKNOWN = 2  # its kubelet stopped reporting
    GPUS_MISSING = 3  # fewer are allocatable than existed
    HAS_FINDINGS = 4  # healthy itself, but with findings, such as failing pods
    UPGRADING = 5  # the upgrade controller works on it
    RECONFIGURING = 6  # the MIG manager works on it, so its GPUs are away
    CORDONED = 7
    HELD = 8  # ready, and held back from the upgrade controller
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


def title_in_text(state: NodeState) -> str:
    """Returns the state's title for the middle of a sentence: not ready, GPUs missing."""
    return TITLES[state] if state is NodeState.GPUS_MISSING else TITLES[state].lower()


def state_key(state: NodeState) -> str:
    """Returns the state's name in URLs: not-ready, gpus-missing."""
    return state.name.lower().replace("_", "-")


STATE_KEYS = {state_key(state): int(state) for state in TITLES}

# States in which the upgrade controller does nothing: `upgrade-required` waits for a slot, or for a release.
AT_REST = frozenset({"", "upgrade-done", "upgrade-required", "upgrade-failed"})
# While nvidia.com/mig.config.state is one of these (mig-parted, pkg/mig/reconfigure/reconfigure.go), the MIG manager
# has stopped the device plugin, normally for minutes. A manager that gave up leaves `pending` (gpu-operator #2833), so
# units that are away too long count as missing.
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
    """Returns the state. `reconfiguring` is the MIG manager's state while it works in time; blank: it does not.
    `unresolved` counts findings, confirmed or not."""
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
