"""A cluster's telemetry source does not answer, so GPU state is unknown. It is not blamed on any node (Z20)."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import ClusterFacts, Problem, Severity
from wording.reports import EvidenceItem, fit


@dataclass(frozen=True)
class TelemetrySilent:
    key: ClassVar[str] = "telemetry-silent"
    title: ClassVar[str] = "Telemetry silent"
    subject: ClassVar[str] = "telemetry"
    reads: ClassVar[tuple[str, ...]] = ()
    after: ClassVar[timedelta] = timedelta(minutes=2)
    steps: ClassVar[tuple[str, ...]] = (
        "Read the reason. Its source may not answer, refuse, return HTML, or time out.",
        "Ask the source from the worker's host: GET /-/ready of the Prometheus.",
        "Check its secret (a file, or the name of a variable), its CA and its label matchers. Test the source.",
    )

    def evaluate(self, cluster: ClusterFacts) -> Problem | None:
        if not cluster.telemetry_silent_reason:
            return None
        return Problem(
            severity=Severity.WARNING,
            title=fit("No telemetry from cluster {}", cluster.name),
            summary="Temperatures, Xids and utilisation are unknown. Pages show the last values with their times.",
            evidence=(EvidenceItem("Reason", cluster.telemetry_silent_reason),),
            identity=cluster.telemetry_silent_reason,
        )
