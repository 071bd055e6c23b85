"""DCGM reports that a GPU needs a reset, a reboot or a drain to recover. Not exported by default.

Unlike the Xid gauge, it is the driver's current request: it returns to 0 once the GPU has recovered.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from gpu.xids import RECOVERY_ACTIONS
from health.rules.base import Severity, Wrong
from health.rules.gpus.base import GpuFacts, at_least
from health.rules.gpus.xid import DO, SEVERITY
from health.telemetry.snapshot import TelemetrySnapshot

METRIC = "recovery_action"


@dataclass(frozen=True)
class RecoveryActionNeeded:
    key: ClassVar[str] = "gpu-recovery-action"
    title: ClassVar[str] = "Recovery action needed"
    after: ClassVar[timedelta] = timedelta(0)
    metrics: ClassVar[tuple[str, ...]] = (METRIC,)

    def suspects(self, snapshot: TelemetrySnapshot) -> Iterable[int]:
        return at_least(snapshot, METRIC, 1)

    def evaluate(self, gpu: GpuFacts) -> Wrong | None:
        number = int(gpu.now.get(METRIC, 0))
        if number < 1:
            return None
        known = RECOVERY_ACTIONS.get(number)
        return Wrong(
            SEVERITY[known.action] if known else Severity.WARNING,
            f"{gpu.name}: its driver asks for recovery action {number} "
            + (f"({known.title})." if known else "that NVML's list does not have."),
            DO[known.action] if known else "Read GPU Recovery Action in nvidia-smi -q on the node.",
            {METRIC: number},
            why=str(number),
        )
