"""A cluster's telemetry source does not answer, so GPU state is unknown. It is not blamed on any node (Z20)."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import ClusterFacts, Severity, Wrong


@dataclass(frozen=True)
class TelemetrySilent:
    key: ClassVar[str] = "telemetry-silent"
    title: ClassVar[str] = "Telemetry silent"
    subject: ClassVar[str] = "telemetry"
    reads: ClassVar[tuple[str, ...]] = ()
    after: ClassVar[timedelta] = timedelta(minutes=2)

    def evaluate(self, cluster: ClusterFacts) -> Wrong | None:
        if not cluster.telemetry_silent_reason:
            return None
        return Wrong(
            Severity.WARNING,
            f"The telemetry source of {cluster.name} is silent: {cluster.telemetry_silent_reason}",
            "Until it answers, temperatures, Xids and loads are unknown. The last values stay, with their times.",
            why=cluster.telemetry_silent_reason,
        )
