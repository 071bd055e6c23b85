"""The same driver and nodes under the GPU Operator alone: the virtual fleet with its defaults, and nothing held."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from gpu.upgrade_controller import CORDON_REQUIRED, UPGRADE_DONE, UPGRADE_REQUIRED, unavailable_of
from rollouts.rehearsal.fleet import VirtualFleet, VirtualNode

AT_ONCE = 1  # maxParallelUpgrades
BEGINS = datetime(2026, 11, 29, 6, tzinfo=UTC)
LOOKS_EVERY = timedelta(minutes=2)  # at least: design/nvidia.md 2.3
LAST_SIGN = timedelta(hours=2)  # from the last change to the last sign of a fault
AT_ONCE_AGAIN = timedelta(seconds=1)  # after a change
STILL = timedelta(hours=6)  # without a change: nothing more will come


def nodes_broken_alone(nodes: Sequence[VirtualNode]) -> int:
    """Returns how many nodes the operator breaks. The nodes are unchanged ones, and stay so."""
    if not any(node.fault for node in nodes):
        return 0
    fleet = VirtualFleet({node.name: replace(node) for node in nodes}, "old", "new", AT_ONCE, version="new")
    for node in fleet.nodes.values():
        node.version = "old"
    now = moved_at = BEGINS
    limit = unavailable_of({}, len(nodes)) or len(nodes)
    began: dict[str, VirtualNode] = {}
    going: dict[str, VirtualNode] = {}  # of those, that are not changed
    may_be_lost: list[VirtualNode] = []  # of those
    is_full = False
    while now - moved_at < STILL and (going or len(began) < len(nodes)):
        # A node that is not Ready takes a slot of maxUnavailable, and none of maxParallelUpgrades.
        was_full, is_full = is_full, sum(not node.is_ready(now) for node in may_be_lost) >= limit
        if is_full != was_full:
            for node in fleet.nodes.values():
                node.is_held = is_full and node.state == UPGRADE_REQUIRED
        moved = fleet.reconcile(now)
        for node in moved:
            if node.state == CORDON_REQUIRED:
                began[node.name] = going[node.name] = node
                may_be_lost += [node] if node.defect.node else []
            elif node.state == UPGRADE_DONE:
                del going[node.name]
        if moved:
            moved_at, now = now, now + AT_ONCE_AGAIN
            continue
        coming = [at for node in going.values() for at in node.changes_at(now) if at > now]
        now = min([*coming, now + LOOKS_EVERY])
    return sum(node.first_sign(now + LAST_SIGN) is not None for node in began.values())
