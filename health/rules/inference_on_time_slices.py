"""Inference runs on time-slices, which isolate neither memory nor faults. Its latency suffers from other pods."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import NODE, NODES, NodeFacts, Severity, Wrong
from wording.numbers import count, either


@dataclass(frozen=True)
class InferenceOnTimeSlices:
    key: ClassVar[str] = "inference-on-time-slices"
    title: ClassVar[str] = "Inference on time-slices"
    subject: ClassVar[str] = NODE
    reads: ClassVar[tuple[str, ...]] = (NODES,)
    after: ClassVar[timedelta] = timedelta(minutes=5)

    def evaluate(self, node: NodeFacts) -> Wrong | None:
        taken = sum(node.requested.values())
        if node.sharing != "time-slicing" or "inference" not in node.workload_classes or not taken:
            return None
        each = "several pods take turns" if node.sharing_replicas is None else _turns(node.sharing_replicas)
        return Wrong(
            Severity.WARNING,
            f"{node.name} is in a pool for inference, and its GPUs are time-sliced: {each} on each, and pods do.",
            "Latency-sensitive inference needs a whole GPU or a MIG slice. Move it, or change the pool's class.",
            {"shares_taken": taken, "replicas": node.sharing_replicas},
        )


def _turns(replicas: int) -> str:
    return f"up to {count(replicas, 'pod')} {either(replicas, 'takes', 'take')} turns"
