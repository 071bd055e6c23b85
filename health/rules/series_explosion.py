"""One exporter has thousands of series of one name. Prometheus runs out of memory, and all GPU telemetry is lost.

Sixteen boards of seven slices with nine reasons each make 1,008 series; GPUs cannot explain twice as many. The rule
reads Prometheus. An exporter that is read directly is refused beyond a size limit.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import ClusterFacts, Problem, Severity
from health.telemetry.base import SERIES_AT_MOST
from wording.reports import EvidenceItem, first_items, fit


@dataclass(frozen=True)
class SeriesExplosion:
    key: ClassVar[str] = "series-explosion"
    title: ClassVar[str] = "Series explosion"
    subject: ClassVar[str] = "telemetry"
    reads: ClassVar[tuple[str, ...]] = ()
    after: ClassVar[timedelta] = timedelta(0)  # its source is checked every five minutes
    steps: ClassVar[tuple[str, ...]] = (
        "Find the label that grows: topk by it in Prometheus.",
        "Drop the series at the scrape: metricRelabelings of the ServiceMonitor.",
        "Remove the drop when the exporter no longer creates them.",
    )

    def evaluate(self, cluster: ClusterFacts) -> Problem | None:
        worst = next(iter(cluster.exploding), None)
        if worst is None:
            return None
        return Problem(
            severity=Severity.WARNING,
            title=fit("Too many series of exporter {}", worst.instance),
            summary=f"It has more than {SERIES_AT_MOST:,} series of one metric. No node has so many GPUs.",
            evidence=first_items(
                EvidenceItem(f"{each.instance} {each.name}"[:200], each.series, "series") for each in cluster.exploding
            ),
            identity=" ".join(f"{each.instance} {each.name}" for each in cluster.exploding[:5]),
        )
