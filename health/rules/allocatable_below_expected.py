"""Fewer GPUs can be allocated than the node once had: capacity may still say they are there (Z24)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from gpu.resources import Layout, missing_in_words
from gpu.resources.names import is_dra, tool_of
from health.rules.base import NODE, NODES, NodeFacts, Severity, Wrong


@dataclass(frozen=True)
class AllocatableBelowExpected:
    key: ClassVar[str] = "allocatable-below-expected"
    title: ClassVar[str] = "GPUs missing"
    subject: ClassVar[str] = NODE
    reads: ClassVar[tuple[str, ...]] = (NODES,)
    after: ClassVar[timedelta] = timedelta(minutes=1)  # a device plugin that restarts is back in seconds

    def judge(self, node: NodeFacts) -> Wrong | None:
        missing = node.missing
        if node.is_changing or not missing:
            return None
        return Wrong(
            Severity.CRITICAL if node.has_lost_all else Severity.WARNING,
            f"{node.name} lacks {missing_in_words(node.expected, node.allocatable, Layout.read(node.layout))}: "
            f"it had more than can be allocated now." + (f" {node.unhealthy}" if node.unhealthy else ""),
            _action(node, missing),
            {
                name: {
                    "allocatable": node.allocatable.get(name),
                    "capacity": node.capacity.get(name),
                    "expected": node.expected[name],
                }
                for name in missing
            },
        )


def _action(node: NodeFacts, missing: Mapping[str, int]) -> str:
    is_one = sum(missing.values()) == 1
    gpu, it = ("GPU", "it") if is_one else ("GPUs", "them")
    offerer, tool = "DRA driver" if all(map(is_dra, missing)) else "device plugin", tool_of(node.vendor)
    if all(node.capacity.get(name, 0) >= node.expected[name] for name in missing):
        said = f"The {offerer} calls {'it' if is_one else 'some of them'} unhealthy: read its log"
        if not node.is_nvidias:
            return f"{said}, then the node's kernel log."
        return (
            f"{said} for the Xid, then the node's kernel log. Where the Xid is over, restart the pod of the {offerer}."
        )
    if not any(node.capacity.get(name) for name in missing):
        driver = "at the driver's on this node first" if node.is_nvidias else f"whether {tool} lists {it} on the node"
        return f"The {offerer} offers none: look at its pod and {driver}."
    return f"Capacity fell too, as after a boot without the {gpu}: look for {it} in lspci and {tool} on the node."
