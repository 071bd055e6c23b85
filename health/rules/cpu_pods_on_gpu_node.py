"""Pods without a GPU request much of a GPU node's CPU or memory, which its free GPUs then lack."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import NODE, NODES, PODS, NodeFacts, Problem, RequestedByOthers, Severity
from wording.reports import EvidenceItem, fit

SHARE = 0.25  # of the allocatable amount; ours


@dataclass(frozen=True)
class CpuPodsOnGpuNode:
    key: ClassVar[str] = "cpu-pods-on-gpu-node"
    title: ClassVar[str] = "Pods without GPUs fill a GPU node"
    subject: ClassVar[str] = NODE
    reads: ClassVar[tuple[str, ...]] = (NODES, PODS)
    after: ClassVar[timedelta] = timedelta(minutes=30)
    steps: ClassVar[tuple[str, ...]] = (
        "List the pods without GPUs on the node, and move them to nodes without GPUs.",
        "Taint the GPU nodes, for example nvidia.com/gpu=present:NoSchedule, so that no such pod starts there.",
    )

    def evaluate(self, node: NodeFacts) -> Problem | None:
        large = [each for each in node.requested_by_others if each.share >= SHARE]
        if not large or not node.free_gpus:
            return None
        what = " and ".join(each.what for each in large)
        return Problem(
            severity=Severity.NOTE,
            title=fit("Pods without GPUs use {} of {}", what, node.name),
            summary=f"They request at least {SHARE:.0%} of its {what}. Its free GPUs may be unusable.",
            evidence=(*map(_evidence, node.requested_by_others), EvidenceItem("Free GPUs", node.free_gpus)),
            identity=what,
        )


def _evidence(amount: RequestedByOthers) -> EvidenceItem:
    requested = f"{amount.requested:g} of {amount.allocatable:g}"
    return EvidenceItem(f"{amount.what}, requested by pods without GPUs", requested, amount.unit)
