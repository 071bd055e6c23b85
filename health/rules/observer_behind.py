"""About Quarterdeck itself: it receives changes of a cluster faster than it can write them, so pages are outdated."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from fleet.freshness import lag
from health.rules.base import ClusterFacts, Severity, Wrong


@dataclass(frozen=True)
class ObserverBehind:
    key: ClassVar[str] = "observer-behind"
    title: ClassVar[str] = "Quarterdeck lags behind"
    subject: ClassVar[str] = "quarterdeck"
    reads: ClassVar[tuple[str, ...]] = ()
    after: ClassVar[timedelta] = timedelta(0)  # `behind_since` waited already

    def evaluate(self, cluster: ClusterFacts) -> Wrong | None:
        if cluster.behind_since is None:
            return None
        return Wrong(
            Severity.WARNING,
            lag.sentence(cluster.name, behind_since=cluster.behind_since),
            "Check the CPU of the worker that observes the cluster, and the database. Add a worker to the observe "
            "queue.",
            {"lag_ms": cluster.lag_ms},
        )
