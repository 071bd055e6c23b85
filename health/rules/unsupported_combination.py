"""Versions run together in a cluster that NVIDIA's support matrix lists as failing or unsupported.

Versions without an answer in the matrix are not reported here; the cluster's page lists them.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import NODES, BadCombination, ClusterFacts, Problem, Severity
from wording.numbers import count
from wording.reports import EvidenceItem, first_items, fit


@dataclass(frozen=True)
class UnsupportedCombination:
    key: ClassVar[str] = "unsupported-combination"
    title: ClassVar[str] = "Unsupported combination"
    subject: ClassVar[str] = "GPU stack"
    reads: ClassVar[tuple[str, ...]] = (NODES,)
    after: ClassVar[timedelta] = timedelta(minutes=30)  # an upgrade passes through pairs that nobody means to keep
    steps: ClassVar[tuple[str, ...]] = (
        "Open the cluster's page. It lists each combination with its nodes and its source.",
        "Plan a change to versions that NVIDIA supports together. Start with combinations that are known to fail.",
    )

    def evaluate(self, cluster: ClusterFacts) -> Problem | None:
        if not cluster.combinations:
            return None
        known_bad = [each for each in cluster.combinations if each.is_known_bad]
        first = (known_bad or cluster.combinations)[0]
        return Problem(
            severity=Severity.WARNING if known_bad else Severity.NOTE,
            title=fit("{} versions in cluster {}", "Known-bad" if known_bad else "Unsupported", cluster.name),
            summary=(
                "Versions run together that are known to fail."
                if known_bad
                else "NVIDIA does not support versions that run together."
            ),
            evidence=first_items(_evidence(each) for each in cluster.combinations),
            steps=(*filter(None, (first.action,)), *self.steps),
            identity=" ".join(each.sentence for each in cluster.combinations[:20]),
        )


def _evidence(each: BadCombination) -> EvidenceItem:
    where = f" ({count(each.nodes, 'node')})" if each.nodes else ""
    return EvidenceItem(each.subject, f"{each.sentence}{where}")
