"""A cluster that does not answer: whatever is wrong in it, nobody would see."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import ClusterFacts, Severity, Wrong


@dataclass(frozen=True)
class ClusterNotSeen:
    key: ClassVar[str] = "cluster-not-seen"
    title: ClassVar[str] = "Cluster not seen"
    after: ClassVar[timedelta] = timedelta(minutes=1)  # an API server that restarts is back in less
    subject: ClassVar[str] = "API server"
    reads: ClassVar[str] = ""

    def judge(self, cluster: ClusterFacts) -> Wrong | None:
        if not cluster.unseen_because:
            return None
        return Wrong(
            Severity.WARNING, f"{cluster.name} is not seen. {cluster.unseen_because}", cluster.unseen_action, {}
        )
