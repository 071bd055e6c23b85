"""A node's labels show GPUs, but it has never offered one. The component that offers them may still be Ready."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import NODE, NODES, PODS, NodeFacts, Problem, Severity
from health.rules.steps import GPU_STACK
from wording.reports import LONGEST_SUMMARY, EvidenceItem, fit

UNKNOWN = "Its labels or taints show GPUs. No pod can use them."


@dataclass(frozen=True)
class GpusNeverOffered:
    key: ClassVar[str] = "gpus-never-offered"
    title: ClassVar[str] = "GPUs never offered"
    subject: ClassVar[str] = NODE
    reads: ClassVar[tuple[str, ...]] = (NODES, PODS)
    after: ClassVar[timedelta] = timedelta(minutes=20)  # a new node compiles its driver first
    steps: ClassVar[tuple[str, ...]] = (
        GPU_STACK,
        "If the operand is Ready, read the log of its pod. Most plugins look for GPUs only at their start.",
        "Check that the driver runs on the node (nvidia-smi, amd-smi). Then delete the plugin's pod.",
        "If there is no operand, check the labels that its DaemonSets select, and the node's taints.",
    )

    def evaluate(self, node: NodeFacts) -> Problem | None:
        offer = node.never_offered
        if offer is None or node.is_changing or node.is_unreported or node.is_ready is not True:
            return None
        state = EvidenceItem(offer.title, "Ready" if offer.is_ready else "not ready")
        return Problem(
            severity=Severity.WARNING,
            title=fit("{} never offered its GPUs", node.name),
            summary=fit("{}: {}", offer.title, offer.trouble, longest=LONGEST_SUMMARY) if offer.trouble else UNKNOWN,
            evidence=(
                *((state,) if offer.title else ()),
                *((EvidenceItem("Log line", offer.message),) if offer.message else ()),
            ),
            causes=(offer.cause,) if offer.cause else (),
            steps=offer.steps,
        )
