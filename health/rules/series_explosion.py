"""One exporter has thousands of series of one name. Prometheus runs out of memory, and all GPU telemetry is lost.

Sixteen boards of seven slices with nine reasons each make 1,008 series; GPUs cannot explain twice as many. The rule
reads Prometheus. An exporter that is read directly is refused beyond a size limit.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import ClusterFacts, Severity, Wrong
from health.telemetry.base import SERIES_AT_MOST
from wording.numbers import count, either


@dataclass(frozen=True)
class SeriesExplosion:
    key: ClassVar[str] = "series-explosion"
    title: ClassVar[str] = "Series explosion"
    subject: ClassVar[str] = "telemetry"
    reads: ClassVar[tuple[str, ...]] = ()
    after: ClassVar[timedelta] = timedelta(0)  # its source is looked at every five minutes

    def evaluate(self, cluster: ClusterFacts) -> Wrong | None:
        worst = next(iter(cluster.exploding), None)
        if worst is None:
            return None
        more = len(cluster.exploding) - 1
        rest = f", and so {either(more, 'has', 'have')} {count(more, 'other')}" if more else ""
        return Wrong(
            Severity.WARNING,
            f"The exporter at {worst.instance} has more than {SERIES_AT_MOST:,} series of "
            f"{worst.name}{rest}. No node has so many GPUs.",
            "Look which label grows (topk by it in Prometheus), and drop the series where they are scraped "
            "(metricRelabelings of the ServiceMonitor) until the exporter no longer makes them.",
            {f"{each.instance} {each.name}"[:200]: each.series for each in cluster.exploding[:20]},
            why=" ".join(f"{each.instance} {each.name}" for each in cluster.exploding[:5]),
        )
