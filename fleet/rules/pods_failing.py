"""Pods on a node crash or cannot start: its tenants' GPU pods, and those of the GPU stack, whatever the node says."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from fleet.rules.base import FailingPod, NodeFacts, Severity, Wrong

NAMED = 2


@dataclass(frozen=True)
class PodsFailing:
    key: ClassVar[str] = "pods-failing"
    title: ClassVar[str] = "Pods fail"
    after: ClassVar[timedelta] = timedelta(minutes=1)  # one crash while a driver restarts is over in seconds
    reads: ClassVar[str] = "pods"

    def judge(self, node: NodeFacts) -> Wrong | None:
        pods = sorted(node.failing_pods, key=lambda pod: (not pod.operand, pod.name))
        if not pods:
            return None
        what = "1 pod fails" if len(pods) == 1 else f"{len(pods)} pods fail"
        more = len(pods) - NAMED
        named = "; ".join(_said(pod) for pod in pods[:NAMED])
        return Wrong(
            Severity.WARNING,
            f"{node.name}: {what}, {named}{f'; and {more} more' if more > 0 else ''}.",
            _action(pods),
            {pod.name: {"status": pod.status, "restarts": pod.restarts} for pod in pods[:20]},
        )


def _said(pod: FailingPod) -> str:
    restarts = f", {pod.restarts} restart{'' if pod.restarts == 1 else 's'}" if pod.restarts else ""
    return f"{pod.name} ({pod.status}{restarts})"


def _action(pods: list[FailingPod]) -> str:
    if any(pod.operand for pod in pods):
        return "The GPU stack on the node's page says why, and what to do."
    if any("Image" in pod.status for pod in pods):
        return "Describe the pod: its events name the image and what the registry says."
    return (
        "Read the last log of its container (`kubectl logs --previous`). Where pods of one workload fail on this node "
        "alone, look at the node's driver and GPUs; where they fail everywhere, at the workload."
    )
