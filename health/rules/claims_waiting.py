"""Pods wait for ResourceClaims whose devices no driver publishes. Pods that end do not free such devices."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import CLAIMS, PODS, SLICES, ClusterFacts, Problem, Severity
from wording.reports import first_items, fit


@dataclass(frozen=True)
class ClaimsWaiting:
    key: ClassVar[str] = "claims-waiting"
    title: ClassVar[str] = "Unserved claims"
    subject: ClassVar[str] = "ResourceClaims"
    reads: ClassVar[tuple[str, ...]] = (PODS, SLICES, CLAIMS)
    after: ClassVar[timedelta] = timedelta(minutes=5)  # a driver that starts publishes within a minute
    steps: ClassVar[tuple[str, ...]] = (
        "Find the driver that the DeviceClass names: kubectl get deviceclass",
        "Check whether the driver publishes devices: kubectl get resourceslices",
        "Read the log of the driver's plugin pod on a node with such GPUs. The API server may reject its slice.",
    )

    def evaluate(self, cluster: ClusterFacts) -> Problem | None:
        pods = sorted(cluster.claims_waiting, key=lambda pod: pod.name)
        if not pods:
            return None
        return Problem(
            severity=Severity.WARNING,
            title=fit("ResourceClaims wait for a driver in {}", cluster.name),
            summary=pods[0].trouble or "Pods wait for claims whose devices no driver publishes.",
            evidence=first_items(pod.evidence for pod in pods),
            causes=pods[0].causes,
            steps=pods[0].steps,
            identity=" ".join((*pods[0].causes, *pods[0].steps)),
        )
