"""GPU nodes without a taint, in a cluster that also has nodes without GPUs: any pod may take their CPU and memory."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import NODES, ClusterFacts, Problem, Severity
from wording.reports import EvidenceItem, fit


@dataclass(frozen=True)
class GpuNodesUntainted:
    key: ClassVar[str] = "gpu-nodes-untainted"
    title: ClassVar[str] = "GPU nodes without a taint"
    subject: ClassVar[str] = "taints of GPU nodes"
    reads: ClassVar[tuple[str, ...]] = (NODES,)
    after: ClassVar[timedelta] = timedelta(hours=1)
    # kubernetes.io/docs/reference/access-authn-authz/admission-controllers: ExtendedResourceToleration.
    steps: ClassVar[tuple[str, ...]] = (
        "Taint the GPU nodes in their node pool or template, for example nvidia.com/gpu=present:NoSchedule.",
        "Enable ExtendedResourceToleration, so that the API server adds the toleration to pods that request GPUs.",
        "Mute this rule if pods without GPUs are welcome there.",
    )

    def evaluate(self, cluster: ClusterFacts) -> Problem | None:
        taints = cluster.taints
        if taints is None or not taints.untainted or not taints.cpu_nodes:
            return None
        return Problem(
            severity=Severity.NOTE,
            title=fit("GPU nodes of {} have no taint", cluster.name),
            summary="The scheduler may place pods without GPUs there, although other nodes exist.",
            evidence=(
                EvidenceItem("GPU nodes without a taint", taints.untainted),
                EvidenceItem("GPU nodes", taints.gpu_nodes),
                EvidenceItem("Nodes without GPUs", taints.cpu_nodes),
            ),
            identity="untainted",
        )
