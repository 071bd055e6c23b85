"""The GPU operator itself does not run. GPUs keep working, but nothing is rolled out, labelled or repaired."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import DEPLOYMENTS, ClusterFacts, Severity, Wrong


@dataclass(frozen=True)
class OperatorDown:
    key: ClassVar[str] = "operator-down"
    title: ClassVar[str] = "GPU operator down"
    subject: ClassVar[str] = "GPU operator"
    reads: ClassVar[tuple[str, ...]] = (DEPLOYMENTS,)
    after: ClassVar[timedelta] = timedelta(minutes=2)  # its own upgrade makes its pod anew

    def evaluate(self, cluster: ClusterFacts) -> Wrong | None:
        if not cluster.operator_trouble:
            return None
        return Wrong(
            Severity.WARNING,
            cluster.operator_trouble,
            "Describe the Deployment and read its pod's last log. If it was scaled to 0, scale it to 1 again.",
        )
