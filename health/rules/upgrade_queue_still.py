"""Nodes are queued for a driver upgrade and none moves: the slots are taken, or the operator waits for all.

A queue alone is no fault: with few slots most nodes of a large fleet wait for hours while others move.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import NODES, ClusterFacts, Severity, Wrong
from wording.numbers import count, either

STILL_FOR = timedelta(minutes=10)  # no node changed its upgrade state for so long

LOOK = (
    "The operator's slots are taken: by a node that failed, is cordoned or is not ready, or by a DaemonSet with a pod "
    "that fits nowhere, which stops them all. Look for upgrade-failed and for driver pods that are Pending."
)


@dataclass(frozen=True)
class UpgradeQueueStill:
    key: ClassVar[str] = "upgrade-queue-still"
    title: ClassVar[str] = "Driver upgrades do not move"
    subject: ClassVar[str] = "driver upgrades"
    reads: ClassVar[tuple[str, ...]] = (NODES,)
    after: ClassVar[timedelta] = timedelta(minutes=20)  # half an hour since the last one moved

    def evaluate(self, cluster: ClusterFacts) -> Wrong | None:
        queued = cluster.upgrades_queued
        if not queued or not cluster.upgrades_are_still:
            return None
        return Wrong(
            Severity.WARNING,
            f"{count(queued, 'node')} of {cluster.name} {either(queued, 'waits', 'wait')} for a driver upgrade, and no "
            "upgrade has progressed for at least ten minutes.",
            cluster.upgrades_kept.helps or LOOK,
            {"queued": queued},
            why=cluster.upgrades_kept_why or "still",
            probable_cause=cluster.upgrades_kept.reason,
        )
