"""Fewer GPUs are allocatable than the node once had. Its capacity may still include them (Z24)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from gpu.resources import Layout, missing_in_words
from gpu.resources.names import is_dra, tool_of
from health.rules.base import NODE, NODES, NodeFacts, Problem, Severity
from health.rules.steps import DRAIN, REBOOT, UNCORDON
from wording.instants import to_the_minute
from wording.reports import EvidenceItem, fit

KERNEL_LOG = "Read the kernel log of the node."
INCOMPLETE = "The DRA driver reports another number of ResourceSlices than exist. None of their GPUs is allocatable."


@dataclass(frozen=True)
class AllocatableBelowExpected:
    key: ClassVar[str] = "allocatable-below-expected"
    title: ClassVar[str] = "GPUs missing"
    subject: ClassVar[str] = NODE
    reads: ClassVar[tuple[str, ...]] = (NODES,)
    after: ClassVar[timedelta] = timedelta(minutes=1)  # a device plugin that restarts is back in seconds
    steps: ClassVar[tuple[str, ...]] = (
        "Compare capacity with the expected number (Evidence). If capacity fell too, the node itself lost GPUs.",
        "If capacity is unchanged, read the log of the device plugin or DRA driver on the node for an Xid.",
        "If capacity fell, look for the GPUs in lspci and nvidia-smi on the node.",
        KERNEL_LOG,
        DRAIN,
        REBOOT,
        UNCORDON,
    )

    def evaluate(self, node: NodeFacts) -> Problem | None:
        missing = node.missing
        if node.is_changing or not missing:
            return None
        cause, steps = _diagnose(node, missing)
        lost = missing_in_words(node.expected, node.allocatable, Layout.read(node.layout))
        title = fit("{} missing on {}", lost, node.name)
        return Problem(
            severity=Severity.CRITICAL if node.has_lost_all else Severity.WARNING,
            title=title,
            summary="The node had more allocatable GPUs before.",
            evidence=(
                *_evidence(node, missing),
                *node.unhealthy_evidence,
                *node.incomplete_pools,
                *_log_line(node),
            ),
            causes=(cause,),
            steps=(*steps, DRAIN, REBOOT, UNCORDON),
            facts={
                name: {
                    "allocatable": node.allocatable.get(name),
                    "capacity": node.capacity.get(name),
                    "expected": node.expected[name],
                }
                for name in missing
            },
            identity=" ".join((title, *node.unhealthy, *steps)),  # the cause names a boot for an hour
        )


def _evidence(node: NodeFacts, missing: Mapping[str, int]) -> Iterator[EvidenceItem]:
    for name in missing:
        yield EvidenceItem(f"{name} allocatable", node.allocatable.get(name, 0))
        yield EvidenceItem(f"{name} capacity", node.capacity.get(name, 0))
        yield EvidenceItem(f"{name} expected", node.expected[name])


def _log_line(node: NodeFacts) -> Iterator[EvidenceItem]:
    if node.withheld and node.withheld.message:
        yield EvidenceItem(f"Log line of the {node.withheld.title.lower()}", node.withheld.message)


def _diagnose(node: NodeFacts, missing: Mapping[str, int]) -> tuple[str, tuple[str, ...]]:
    """Returns the probable cause and the first steps."""
    gpu, it = ("GPU", "it") if sum(missing.values()) == 1 else ("GPUs", "them")
    offerer, tool = "DRA driver" if all(map(is_dra, missing)) else "device plugin", tool_of(node.vendor)
    if node.incomplete_pools and all(map(is_dra, missing)):
        restart = "If the pool stays incomplete, restart the pod of the DRA driver."
        return INCOMPLETE, ("Read the log of the DRA driver on the node.", restart)
    if all(node.capacity.get(name, 0) >= node.expected[name] for name in missing):
        cause = f"The {offerer} reports the {gpu} as unhealthy."
        if node.withheld:
            return node.withheld.cause, node.withheld.steps
        if not node.is_nvidias:
            return cause, (f"Read the log of the {offerer} on the node.", KERNEL_LOG)
        restart = f"If the Xid does not return, restart the pod of the {offerer}."
        return cause, (f"Read the log of the {offerer} on the node for the Xid.", KERNEL_LOG, restart)
    if not any(node.capacity.get(name) for name in missing):
        driver = "Check the driver's pod on the node." if node.is_nvidias else f"Check whether {tool} lists the {gpu}."
        return f"The {offerer} offers no GPU.", (driver, f"Check the pod of the {offerer} on the node.")
    find = f"Look for the {gpu} in lspci and {tool} on the node."
    booted = f" The node booted at {to_the_minute(node.booted_at)}." if node.booted_at else ""
    if all(map(is_dra, missing)):
        cause = f"The DRA driver removed the {gpu} as unhealthy, or started without {it}.{booted}"
        return cause, (find, "Read the log of the DRA driver on the node.")
    return f"The node probably booted without the {gpu}. Its capacity fell too.{booted}", (find, KERNEL_LOG)
