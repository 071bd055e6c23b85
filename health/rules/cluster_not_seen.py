"""A cluster does not answer, so nobody would notice a fault in it."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import ClusterFacts, Severity, Wrong


@dataclass(frozen=True)
class ClusterNotSeen:
    key: ClassVar[str] = "cluster-not-seen"
    title: ClassVar[str] = "Cluster not seen"
    subject: ClassVar[str] = "API server"
    reads: ClassVar[tuple[str, ...]] = ()
    after: ClassVar[timedelta] = timedelta(minutes=1)  # an API server that restarts is back in less

    def evaluate(self, cluster: ClusterFacts) -> Wrong | None:
        if not cluster.unseen_state:
            return None
        return Wrong(
            Severity.WARNING,
            f"{cluster.name} is not seen. {cluster.unseen_reason}",
            cluster.unseen_action,
            why=cluster.unseen_state,
        )
