"""A NVIDIADriver stays notReady while all its driver pods are ready. Usually they use an older template."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import NVIDIA_DRIVERS, PODS, ClusterFacts, Problem, Severity
from wording.reports import EvidenceItem, fit


@dataclass(frozen=True)
class DriverObjectStuck:
    key: ClassVar[str] = "driver-object-stuck"
    title: ClassVar[str] = "NVIDIADriver stays notReady"
    subject: ClassVar[str] = "NVIDIADriver"
    reads: ClassVar[tuple[str, ...]] = (PODS, NVIDIA_DRIVERS)
    after: ClassVar[timedelta] = timedelta(minutes=15)  # the operator looks again every few minutes
    steps: ClassVar[tuple[str, ...]] = (
        "Compare the driver pods' label controller-revision-hash with the newest revision of their DaemonSet.",
        "Drain a node with such a pod: kubectl drain --ignore-daemonsets",
        "Delete the driver pod of the node. Its DaemonSet creates it from the newest template.",
        "Uncordon the node, then continue with the next: kubectl uncordon",
    )

    def evaluate(self, cluster: ClusterFacts) -> Problem | None:
        """Returns the problem of the first by name. A cluster has few."""
        stuck = min(cluster.stuck_drivers, key=lambda each: each.name, default=None)
        if stuck is None:
            return None
        old = f"Driver pods {'use' if stuck.older else 'probably use'} an older template."
        return Problem(
            severity=Severity.WARNING,
            title=fit("NVIDIADriver {} stays notReady", stuck.name),
            summary="All its driver pods are ready. GPUs keep working, but the operator waits.",
            evidence=(
                EvidenceItem("Driver pods", stuck.pods),
                EvidenceItem("Of an older template", stuck.older),
                *((EvidenceItem("Condition", stuck.message),) if stuck.message else ()),
            ),
            causes=(
                old,
                "The operator replaces no pod if only its nodeSelector or labels changed (gpu-operator #1661).",
            ),
            identity=f"{stuck.name} {stuck.pods} {stuck.older}",
        )
