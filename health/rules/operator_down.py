"""The GPU operator itself does not run. GPUs keep working, but nothing is rolled out, labelled or repaired."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import DEPLOYMENTS, ClusterFacts, Problem, Severity
from wording.reports import EvidenceItem, fit


@dataclass(frozen=True)
class OperatorDown:
    key: ClassVar[str] = "operator-down"
    title: ClassVar[str] = "GPU operator down"
    subject: ClassVar[str] = "GPU operator"
    reads: ClassVar[tuple[str, ...]] = (DEPLOYMENTS,)
    after: ClassVar[timedelta] = timedelta(minutes=2)  # an upgrade of the operator recreates its pod
    steps: ClassVar[tuple[str, ...]] = (
        "Describe its Deployment: kubectl describe deployment in its namespace.",
        "Read the last log of its pod: kubectl logs POD --previous",
        "If the Deployment was scaled to 0, ask why. Then scale it to 1.",
    )

    def evaluate(self, cluster: ClusterFacts) -> Problem | None:
        if not cluster.operator_trouble:
            return None
        return Problem(
            severity=Severity.WARNING,
            title=fit("GPU operator down in {}", cluster.name),
            summary="The operator rolls out and repairs nothing.",
            evidence=(EvidenceItem("State", cluster.operator_trouble),),
            identity=cluster.operator_trouble,
        )
