"""About Quarterdeck itself: no worker takes a cluster's lease, or the workers have no free thread for it."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import ClusterFacts, Severity, Wrong
from wording.instants import to_the_second


@dataclass(frozen=True)
class ClusterUnwatched:
    key: ClassVar[str] = "cluster-unwatched"
    title: ClassVar[str] = "Cluster unwatched"
    subject: ClassVar[str] = "quarterdeck"
    reads: ClassVar[tuple[str, ...]] = ()
    after: ClassVar[timedelta] = timedelta(0)  # `unwatched_since` waited already

    def evaluate(self, cluster: ClusterFacts) -> Wrong | None:
        if cluster.unwatched_since is None:
            return None
        return Wrong(
            Severity.CRITICAL,
            f"No worker watches {cluster.name} since {to_the_second(cluster.unwatched_since)}. Pages show its state at "
            "that time.",
            cluster.unwatched_action,
            {"unwatched_since": cluster.unwatched_since.isoformat()},
        )
