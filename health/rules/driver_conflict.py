"""NVIDIADrivers with overlapping node selectors: the operator carries out none of them."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import NVIDIA_DRIVERS, ClusterFacts, Problem, Severity
from wording.lists import names
from wording.reports import EvidenceItem, fit


@dataclass(frozen=True)
class DriversConflict:
    key: ClassVar[str] = "drivers-conflict"
    title: ClassVar[str] = "NVIDIADrivers conflict"
    subject: ClassVar[str] = "NVIDIADriver"
    reads: ClassVar[tuple[str, ...]] = (NVIDIA_DRIVERS,)
    after: ClassVar[timedelta] = timedelta(minutes=5)
    steps: ClassVar[tuple[str, ...]] = (
        "Compare spec.nodeSelector of all NVIDIADrivers (kubectl get nvidiadriver -o yaml) with the nodes' labels.",
        "Change the selectors so that each node matches one of them.",
        "Before release 26.7, an NVIDIADriver without a selector takes every node. Give it a selector.",
        "If ConflictingNodeSelector stays, change a label of the object. Only a change makes the operator check again.",
    )

    def evaluate(self, cluster: ClusterFacts) -> Problem | None:
        conflict = cluster.driver_conflict
        if conflict is None:
            return None
        return Problem(
            severity=Severity.WARNING,
            title=fit("NVIDIADrivers select the same node: {}", names(conflict.names)),
            summary="The operator carries out none of them.",
            evidence=(
                EvidenceItem("NVIDIADrivers", ", ".join(conflict.names)),
                EvidenceItem("Condition", conflict.message),
            ),
            identity=" ".join(conflict.names),
        )
