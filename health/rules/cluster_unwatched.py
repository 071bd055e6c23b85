"""About Quarterdeck itself: no worker takes a cluster's lease, or the workers have no free thread for it."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import ClusterFacts, Problem, Severity
from wording.reports import fit, instant


@dataclass(frozen=True)
class ClusterUnwatched:
    key: ClassVar[str] = "cluster-unwatched"
    title: ClassVar[str] = "Cluster unwatched"
    subject: ClassVar[str] = "quarterdeck"
    reads: ClassVar[tuple[str, ...]] = ()
    after: ClassVar[timedelta] = timedelta(0)  # `unwatched_since` waited already
    steps: ClassVar[tuple[str, ...]] = (
        "Check whether a worker of the queue observe runs: bin/manage doctor",
        "Start a worker, or give the queue more threads.",
    )

    def evaluate(self, cluster: ClusterFacts) -> Problem | None:
        if cluster.unwatched_since is None:
            return None
        return Problem(
            severity=Severity.CRITICAL,
            title=fit("No worker watches cluster {}", cluster.name),
            summary="Pages show the cluster's last known state.",
            evidence=(instant("Unwatched since", cluster.unwatched_since),),
            steps=(cluster.unwatched_action, self.steps[0]) if cluster.unwatched_action else (),
            identity=f"{cluster.unwatched_since} {cluster.unwatched_action}",
        )
