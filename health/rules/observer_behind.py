"""About Quarterdeck itself: it receives changes of a cluster faster than it can write them, so pages are outdated."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import ClusterFacts, Problem, Severity
from wording.reports import EvidenceItem, fit, instant


@dataclass(frozen=True)
class ObserverBehind:
    key: ClassVar[str] = "observer-behind"
    title: ClassVar[str] = "Quarterdeck lags behind"
    subject: ClassVar[str] = "quarterdeck"
    reads: ClassVar[tuple[str, ...]] = ()
    after: ClassVar[timedelta] = timedelta(0)  # `behind_since` waited already
    steps: ClassVar[tuple[str, ...]] = (
        "Check the CPU of the worker that observes the cluster, and the database.",
        "Add a worker to the queue observe.",
    )

    def evaluate(self, cluster: ClusterFacts) -> Problem | None:
        if cluster.behind_since is None:
            return None
        return Problem(
            severity=Severity.WARNING,
            title=fit("Quarterdeck lags behind cluster {}", cluster.name),
            summary="Pages show changes late.",
            evidence=(
                instant("Behind since", cluster.behind_since),
                EvidenceItem("Lag at the start", cluster.lag_ms, "ms"),
            ),
            causes=("The worker has too little CPU.", "The database is slow."),
            identity=cluster.behind_since.isoformat(),
        )
