"""The operator gave up a node's driver upgrade. The node stays cordoned and occupies one upgrade slot."""

from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import ClassVar

from gpu.labels import UPGRADE_STATE
from gpu.upgrade_controller import UPGRADE_FAILED, UPGRADE_REQUIRED
from health.rules.base import NODE, NODES, NodeFacts, Problem, Severity
from health.rules.steps import GPU_STACK
from wording.reports import EvidenceItem, fit


@dataclass(frozen=True)
class UpgradeFailed:
    key: ClassVar[str] = "upgrade-failed"
    title: ClassVar[str] = "Driver upgrade failed"
    subject: ClassVar[str] = NODE
    reads: ClassVar[tuple[str, ...]] = (NODES,)
    after: ClassVar[timedelta] = timedelta(minutes=1)
    steps: ClassVar[tuple[str, ...]] = (
        GPU_STACK,
        "Repair the driver's pod, or the validator's.",
        f"Let the operator try again: kubectl label node NODE {UPGRADE_STATE}={UPGRADE_REQUIRED} --overwrite",
        "If several nodes fail like this, halt the plan and roll it back.",
    )

    def evaluate(self, node: NodeFacts) -> Problem | None:
        if node.upgrade_state != UPGRADE_FAILED:
            return None
        blocker = node.upgrade_blocker
        return Problem(
            severity=Severity.CRITICAL,
            title=fit("Driver upgrade of {} failed", node.name),
            summary="The node stays cordoned and takes one of the operator's slots.",
            evidence=(EvidenceItem("Upgrade state", node.upgrade_state),),
            causes=blocker.causes,
            steps=(*blocker.steps, *self.steps[2:]) if blocker.steps else (),
            facts={"state": node.upgrade_state, "blocker": asdict(blocker)},
            identity=" ".join((node.upgrade_state, *blocker.causes, *blocker.steps)),
        )
