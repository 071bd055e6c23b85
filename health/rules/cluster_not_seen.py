"""A cluster does not answer, so nobody would notice a fault in it."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import ClusterFacts, Problem, Severity
from wording.reports import EvidenceItem, fit


@dataclass(frozen=True)
class ClusterNotSeen:
    key: ClassVar[str] = "cluster-not-seen"
    title: ClassVar[str] = "Cluster not seen"
    subject: ClassVar[str] = "API server"
    reads: ClassVar[tuple[str, ...]] = ()
    after: ClassVar[timedelta] = timedelta(minutes=1)  # an API server that restarts is back in less
    steps: ClassVar[tuple[str, ...]] = (
        "Read the reason: a refused connection, a certificate, credentials or a missing right.",
        "Ask the API server from the worker's host: kubectl get --raw /readyz",
        "Run bin/manage doctor on the worker's host. It lists the kinds that are not observed.",
    )

    def evaluate(self, cluster: ClusterFacts) -> Problem | None:
        if not cluster.unseen_state:
            return None
        return Problem(
            severity=Severity.WARNING,
            title=fit("Cluster {} is not observed", cluster.name),
            summary="Its findings stay as they were. New faults are not detected.",
            evidence=(EvidenceItem("State", cluster.unseen_state), EvidenceItem("Reason", cluster.unseen_reason)),
            steps=(*filter(None, (cluster.unseen_action,)), *self.steps[1:]),
            identity=cluster.unseen_state,
        )
