"""A node's labels show GPUs, but it has never offered one. The component that offers them may still be Ready."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import NODE, NODES, PODS, NodeFacts, Severity, Wrong


@dataclass(frozen=True)
class GpusNeverOffered:
    key: ClassVar[str] = "gpus-never-offered"
    title: ClassVar[str] = "GPUs never offered"
    subject: ClassVar[str] = NODE
    reads: ClassVar[tuple[str, ...]] = (NODES, PODS)
    after: ClassVar[timedelta] = timedelta(minutes=20)  # a new node compiles its driver first

    def evaluate(self, node: NodeFacts) -> Wrong | None:
        offer = node.never_offered
        if offer is None or node.is_changing or node.is_unreported or node.is_ready is not True:
            return None
        though = f", though {offer.title} is Ready" if offer.is_ready else ""
        return Wrong(
            Severity.WARNING,
            f"{node.name} has GPUs by its labels or taints and offers none{though}, so no pod can use one here.",
            offer.action or "See the GPU stack on the node's page for the missing operand and its cause.",
            {"operand": offer.title, "said": offer.message} if offer.title else {},
            probable_cause=offer.reason,
        )
