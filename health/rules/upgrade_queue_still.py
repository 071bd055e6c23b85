"""Nodes are queued for a driver upgrade and none moves: the slots are taken, or the operator waits for all.

A queue alone is no fault: with few slots most nodes of a large fleet wait for hours while others move.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import NODES, ClusterFacts, Problem, Severity
from wording.reports import EvidenceItem, fit

STILL_FOR = timedelta(minutes=10)  # no node changed its upgrade state for so long


@dataclass(frozen=True)
class UpgradeQueueStill:
    key: ClassVar[str] = "upgrade-queue-still"
    title: ClassVar[str] = "Driver upgrades do not move"
    subject: ClassVar[str] = "driver upgrades"
    reads: ClassVar[tuple[str, ...]] = (NODES,)
    after: ClassVar[timedelta] = timedelta(minutes=20)  # half an hour since the last one moved
    steps: ClassVar[tuple[str, ...]] = (
        "Check findings of the rule upgrade-failed. A failed node keeps its slot.",
        "Check nodes that are cordoned or not ready. They take slots too.",
        "Check for a driver pod that is Pending. It stops all upgrades of its DaemonSet.",
        "Repair these nodes first, or raise maxParallelUpgrades or maxUnavailable of the upgrade policy.",
    )

    def evaluate(self, cluster: ClusterFacts) -> Problem | None:
        queued, blocker = cluster.upgrades_queued, cluster.upgrades_blocker
        if not queued or not cluster.upgrades_are_still:
            return None
        return Problem(
            severity=Severity.WARNING,
            title=fit("Driver upgrades do not progress in {}", cluster.name),
            summary="Nodes wait in the operator's queue. No upgrade has progressed for ten minutes or more.",
            evidence=(EvidenceItem("Queued at the start", queued, "nodes"),),
            causes=blocker.causes,
            steps=blocker.steps,
            identity=cluster.upgrades_blocked_by or "still",
        )
