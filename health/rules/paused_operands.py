"""The driver manager stopped operands for a driver upgrade, and nobody restarted them (gpu-operator #316)."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from gpu.labels import DEPLOY_PREFIX, PAUSED
from health.rules.base import NODE, NODES, NodeFacts, Problem, Severity
from health.rules.steps import GPU_STACK
from wording.reports import EvidenceItem, fit


@dataclass(frozen=True)
class PausedOperands:
    key: ClassVar[str] = "paused-operands"
    title: ClassVar[str] = "Operands left paused"
    subject: ClassVar[str] = NODE
    reads: ClassVar[tuple[str, ...]] = (NODES,)
    after: ClassVar[timedelta] = timedelta(minutes=10)  # a driver that is replaced takes minutes
    steps: ClassVar[tuple[str, ...]] = (
        GPU_STACK,
        "If the driver runs, delete the driver's pod. The driver manager then removes the pause.",
        "Otherwise set the labels nvidia.com/gpu.deploy.* with paused-for-driver-upgrade to true.",
    )

    def evaluate(self, node: NodeFacts) -> Problem | None:
        if node.is_changing or not node.is_paused:
            return None
        return Problem(
            severity=Severity.CRITICAL if node.has_lost_all else Severity.WARNING,
            title=fit("Operands left paused on {}", node.name),
            summary="They are paused for a driver upgrade that has ended or never began.",
            evidence=(EvidenceItem(f"Labels {DEPLOY_PREFIX}*", PAUSED),),
            identity="paused",
        )
