"""About Quarterdeck itself: it hears more of a cluster than it can write, so that pages show the past."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import ClusterFacts, Severity, Wrong
from wording.instants import to_the_second


@dataclass(frozen=True)
class ObserverBehind:
    key: ClassVar[str] = "observer-behind"
    title: ClassVar[str] = "Quarterdeck lags behind"
    subject: ClassVar[str] = "quarterdeck"
    reads: ClassVar[tuple[str, ...]] = ()
    after: ClassVar[timedelta] = timedelta(0)  # `behind_since` waited already

    def judge(self, cluster: ClusterFacts) -> Wrong | None:
        if cluster.behind_since is None:
            return None
        return Wrong(
            Severity.WARNING,
            f"Quarterdeck cannot keep up with {cluster.name} since {to_the_second(cluster.behind_since)}: changes "
            "are shown late. Its worker has too little CPU, or the database is slow.",
            "Look at the CPU of the worker that observes it and at the database; give the observe queue a worker more.",
            {"lag_ms": cluster.lag_ms},
        )
