"""Versions run together in a cluster that NVIDIA's support matrix lists as failing or unsupported.

Versions without an answer in the matrix are not reported here; the cluster's page lists them.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import NODES, ClusterFacts, Severity, Wrong

NAMED = 2


@dataclass(frozen=True)
class UnsupportedCombination:
    key: ClassVar[str] = "unsupported-combination"
    title: ClassVar[str] = "Unsupported combination"
    subject: ClassVar[str] = "GPU stack"
    reads: ClassVar[tuple[str, ...]] = (NODES,)
    after: ClassVar[timedelta] = timedelta(minutes=30)  # an upgrade passes through pairs that nobody means to keep

    def evaluate(self, cluster: ClusterFacts) -> Wrong | None:
        if not cluster.combinations:
            return None
        known_bad = [each for each in cluster.combinations if each.is_known_bad]
        told = known_bad or cluster.combinations
        more = len(cluster.combinations) - min(len(told), NAMED)
        rest = f" NVIDIA's support matrix speaks against {more} more: the page of the cluster has them." if more else ""
        return Wrong(
            Severity.WARNING if known_bad else Severity.NOTE,  # it runs; nobody may help where it one day does not
            f"{cluster.name} runs what {'is known to fail' if known_bad else 'NVIDIA does not support'}: "
            f"{' '.join(each.sentence for each in told[:NAMED])}{rest}",
            f"{told[0].action or 'Plan a change to versions that go together.'} The page of the cluster has all of it, "
            "with sources.",
            {f"{place + 1}": {"says": each.sentence, "nodes": each.nodes, "source": each.source}
             for place, each in enumerate(cluster.combinations[:20])},
            why=" ".join(each.sentence for each in cluster.combinations[:20]),
        )  # fmt: skip
