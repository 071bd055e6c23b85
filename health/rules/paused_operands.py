"""The driver manager stopped operands for a driver upgrade, and nobody restarted them (gpu-operator #316)."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from gpu.labels import DEPLOY_PREFIX, PAUSED
from health.rules.base import NODE, NODES, NodeFacts, Severity, Wrong


@dataclass(frozen=True)
class PausedOperands:
    key: ClassVar[str] = "paused-operands"
    title: ClassVar[str] = "Operands left paused"
    subject: ClassVar[str] = NODE
    reads: ClassVar[tuple[str, ...]] = (NODES,)
    after: ClassVar[timedelta] = timedelta(minutes=10)  # a driver that is replaced takes minutes

    def evaluate(self, node: NodeFacts) -> Wrong | None:
        if node.is_changing or not node.is_paused:
            return None
        return Wrong(
            Severity.CRITICAL if node.has_lost_all else Severity.WARNING,
            f"Operands of {node.name} are paused for a driver upgrade that has ended or never began.",
            f"Its labels {DEPLOY_PREFIX}* say {PAUSED}: set them to true once the driver runs, and their pods come "
            "back. Deleting the driver's pod makes the driver manager do it again by itself.",
            why="paused",
        )
