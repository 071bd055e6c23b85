"""One job runs in several NVLink domains, so that its pods reach each other by the slower network."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import NODES, PODS, ClusterFacts, Problem, Severity
from wording.numbers import count
from wording.reports import EvidenceItem, first_items, fit


@dataclass(frozen=True)
class GangAcrossDomains:
    key: ClassVar[str] = "gang-across-domains"
    title: ClassVar[str] = "Job spans NVLink domains"
    subject: ClassVar[str] = "placement of jobs"
    reads: ClassVar[tuple[str, ...]] = (NODES, PODS)
    after: ClassVar[timedelta] = timedelta(minutes=10)
    steps: ClassVar[tuple[str, ...]] = (
        "Ask the owners whether the job uses NVLink between nodes.",
        "If it does, give its pods an affinity to one domain (label nvidia.com/gpu.clique), or a ComputeDomain.",
    )

    def evaluate(self, cluster: ClusterFacts) -> Problem | None:
        if not cluster.split_gangs:
            return None
        return Problem(
            severity=Severity.NOTE,
            title=fit("Jobs in {} span several NVLink domains", cluster.name),
            summary="Their pods reach each other outside of NVLink.",
            evidence=first_items(
                EvidenceItem(gang.name, f"{count(gang.pods, 'pod')} in {gang.domains} domains")
                for gang in cluster.split_gangs
            ),
            identity=" ".join(gang.name for gang in cluster.split_gangs),
        )
