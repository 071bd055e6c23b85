"""The operator gave up a node's driver upgrade. The node stays cordoned and occupies one upgrade slot."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from gpu.upgrade_controller import UPGRADE_FAILED, UPGRADE_REQUIRED
from health.rules.base import NODE, NODES, NodeFacts, Severity, Wrong


@dataclass(frozen=True)
class UpgradeFailed:
    key: ClassVar[str] = "upgrade-failed"
    title: ClassVar[str] = "Driver upgrade failed"
    subject: ClassVar[str] = NODE
    reads: ClassVar[tuple[str, ...]] = (NODES,)
    after: ClassVar[timedelta] = timedelta(minutes=1)

    def evaluate(self, node: NodeFacts) -> Wrong | None:
        if node.upgrade_state != UPGRADE_FAILED:
            return None
        first = node.upgrade_kept.helps or "Look at its driver pod and at its validators first."
        return Wrong(
            Severity.CRITICAL,
            f"The driver upgrade of {node.name} failed. It stays cordoned and takes one of the operator's slots.",
            f"{first} Then label the node {UPGRADE_REQUIRED}: it leaves {UPGRADE_FAILED} no other way.",
            {"state": node.upgrade_state},
            why=f"{node.upgrade_state} {node.upgrade_kept}",
            probable_cause=node.upgrade_kept.reason,
        )
