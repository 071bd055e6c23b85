"""Inference runs on time-slices, which isolate neither memory nor faults. Its latency suffers from other pods."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import NODE, NODES, NodeFacts, Problem, Severity
from wording.reports import EvidenceItem, fit


@dataclass(frozen=True)
class InferenceOnTimeSlices:
    key: ClassVar[str] = "inference-on-time-slices"
    title: ClassVar[str] = "Inference on time-slices"
    subject: ClassVar[str] = NODE
    reads: ClassVar[tuple[str, ...]] = (NODES,)
    after: ClassVar[timedelta] = timedelta(minutes=5)
    steps: ClassVar[tuple[str, ...]] = (
        "Ask whether the latency of the inference matters. Pods on one GPU take turns and share its memory.",
        "If it does, give the pods whole GPUs, MIG slices or MPS in the device plugin's configuration.",
        "If it does not, change the workload class of the pool.",
    )

    def evaluate(self, node: NodeFacts) -> Problem | None:
        taken = sum(node.requested.values())
        if node.sharing != "time-slicing" or "inference" not in node.workload_classes or not taken:
            return None
        replicas = node.sharing_replicas
        return Problem(
            severity=Severity.WARNING,
            title=fit("Inference runs on time-sliced GPUs of {}", node.name),
            summary="The node is in a pool for inference. Pods take turns on its GPUs.",
            evidence=(
                EvidenceItem("Shares in use", taken),
                *((EvidenceItem("Shares of each GPU", replicas),) if replicas is not None else ()),
            ),
            identity=f"{replicas}",
        )
