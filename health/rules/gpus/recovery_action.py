"""DCGM reports that a GPU needs a reset, a reboot or a drain to recover. Not exported by default.

Unlike the Xid gauge, it is the driver's current request: it returns to 0 once the GPU has recovered.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from gpu.xids import ACTIONS, RECOVERY_ACTIONS
from health.rules.base import Problem, Severity
from health.rules.gpus.base import GpuFacts, devices_at_least
from health.rules.steps import REPLACE, SAVE_LOGS, UNCORDON
from health.telemetry.snapshot import TelemetrySnapshot
from wording.reports import EvidenceItem, fit

METRIC = "recovery_action"


@dataclass(frozen=True)
class RecoveryActionNeeded:
    key: ClassVar[str] = "gpu-recovery-action"
    title: ClassVar[str] = "Recovery action needed"
    after: ClassVar[timedelta] = timedelta(0)
    metrics: ClassVar[tuple[str, ...]] = (METRIC,)
    steps: ClassVar[tuple[str, ...]] = (
        "Read the Xids before it. Their finding shows what happened.",
        SAVE_LOGS,
        "Carry out the recovery action: GPU Recovery Action in nvidia-smi -q on the node.",
        REPLACE,
        UNCORDON,
    )

    def suspects(self, snapshot: TelemetrySnapshot) -> Iterable[int]:
        return devices_at_least(snapshot, METRIC, 1)

    def evaluate(self, gpu: GpuFacts) -> Problem | None:
        number = int(gpu.now.get(METRIC, 0))
        if number < 1:
            return None
        known = RECOVERY_ACTIONS.get(number)
        action = ACTIONS[known.action] if known else None
        return Problem(
            severity=Severity(action.severity) if action else Severity.WARNING,
            title=fit("{} needs recovery action {}", gpu.name, known.title if known else number),
            summary=(
                "The driver requests this action."
                if known
                else "The driver requests an action that NVML's list does not have."
            ),
            evidence=(EvidenceItem("Recovery action", f"{number} ({known.title})" if known else number),),
            steps=(*self.steps[:2], *action.steps, *self.steps[3:]) if action else (),
            facts={METRIC: number},
            identity=str(number),
        )
