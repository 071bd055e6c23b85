"""Fewer GPUs are allocatable than the node once had. Its capacity may still include them (Z24)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from gpu.resources import Layout, missing_in_words
from gpu.resources.names import is_dra, tool_of
from health.rules.base import NODE, NODES, NodeFacts, Severity, Wrong
from wording.instants import to_the_minute


@dataclass(frozen=True)
class AllocatableBelowExpected:
    key: ClassVar[str] = "allocatable-below-expected"
    title: ClassVar[str] = "GPUs missing"
    subject: ClassVar[str] = NODE
    reads: ClassVar[tuple[str, ...]] = (NODES,)
    after: ClassVar[timedelta] = timedelta(minutes=1)  # a device plugin that restarts is back in seconds

    def evaluate(self, node: NodeFacts) -> Wrong | None:
        missing = node.missing
        if node.is_changing or not missing:
            return None
        probable_cause, action = _why(node, missing)
        lost = missing_in_words(node.expected, node.allocatable, Layout.read(node.layout))
        called = f" {node.unhealthy}" if node.unhealthy else ""
        sentence = f"{node.name} lacks {lost}. It had more allocatable GPUs before.{called}"
        return Wrong(
            Severity.CRITICAL if node.has_lost_all else Severity.WARNING,
            sentence,
            action,
            {
                name: {
                    "allocatable": node.allocatable.get(name),
                    "capacity": node.capacity.get(name),
                    "expected": node.expected[name],
                }
                for name in missing
            },
            why=f"{sentence} {action}",  # a boot is said for an hour
            probable_cause=probable_cause,
        )


def _why(node: NodeFacts, missing: Mapping[str, int]) -> tuple[str, str]:
    """Returns the probable cause and the recommended action."""
    is_one = sum(missing.values()) == 1
    gpu, it = ("GPU", "it") if is_one else ("GPUs", "them")
    offerer, tool = "DRA driver" if all(map(is_dra, missing)) else "device plugin", tool_of(node.vendor)
    if all(node.capacity.get(name, 0) >= node.expected[name] for name in missing):
        cause = f"The {offerer} calls {it} unhealthy."
        if not node.is_nvidias:
            return cause, f"Read the {offerer}'s log, then the node's kernel log."
        return cause, (
            f"Read the {offerer}'s log for the Xid, then the node's kernel log. If the Xid is over, restart the pod "
            f"of the {offerer}."
        )
    if not any(node.capacity.get(name) for name in missing):
        driver = "at the driver's on this node first" if node.is_nvidias else f"whether {tool} lists {it} on the node"
        return f"The {offerer} offers none.", f"Look at the {offerer}'s pod and {driver}."
    look = f"Look for {it} in lspci and {tool} on the node."
    if all(map(is_dra, missing)):
        boot = f"as when the node booted at {to_the_minute(node.booted_at)}" if node.booted_at else "as after a boot"
        cause = f"The DRA driver publishes {it} no more: it took {it} out as unhealthy, or began without {it}, {boot}."
        return cause, f"{look} The DRA driver's log says what it found."
    boot = (
        f"it booted at {to_the_minute(node.booted_at)}, perhaps without"
        if node.booted_at
        else "as after a boot without"
    )
    return f"Capacity fell too, {boot} the {gpu}.", look
