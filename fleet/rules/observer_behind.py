"""About Quarterdeck itself: it hears more of a cluster than it can write, so that pages show the past."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from fleet.rules.base import ClusterFacts, Severity, Wrong


@dataclass(frozen=True)
class ObserverBehind:
    key: ClassVar[str] = "observer-behind"
    title: ClassVar[str] = "Quarterdeck lags behind"
    after: ClassVar[timedelta] = timedelta(0)  # `behind_since` waited already

    def judge(self, cluster: ClusterFacts) -> Wrong | None:
        if cluster.behind_since is None:
            return None
        return Wrong(
            Severity.WARNING,
            f"Quarterdeck lags behind {cluster.name}: what its pages show is {cluster.lag_s:.1f} s old, "
            f"and has been late since {cluster.behind_since:%H:%M:%S} UTC.",
            "The worker that observes it has too little CPU, or the database is slow: look at both, or give the "
            "observe queue a worker of its own.",
            {"lag_s": round(cluster.lag_s, 3)},
        )
