"""Errors on a GPU's NVLinks (Xid 74 and 144 to 150 say the same). Off by default at exporters (Z23)."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import Severity, Wrong
from health.rules.gpus.base import GpuFacts
from health.telemetry.frame import Frame
from health.telemetry.remembering import grown_by

FLIT, DATA, REPLAYS, RECOVERIES = "nvlink_flit_errors", "nvlink_data_errors", "nvlink_replays", "nvlink_recoveries"


@dataclass(frozen=True)
class NvlinkErrors:
    key: ClassVar[str] = "gpu-nvlink-errors"
    title: ClassVar[str] = "NVLink errors"
    after: ClassVar[timedelta] = timedelta(minutes=1)
    metrics: ClassVar[tuple[str, ...]] = (FLIT, DATA, REPLAYS, RECOVERIES)
    most: int = 100  # CRC errors or replays in the last half to whole hour; of recoveries one is enough. Ours

    def suspects(self, frame: Frame) -> Iterable[int]:
        return {
            *grown_by(frame, FLIT, self.most),
            *grown_by(frame, DATA, self.most),
            *grown_by(frame, REPLAYS, self.most),
            *grown_by(frame, RECOVERIES, 1),
        }

    def judge(self, gpu: GpuFacts) -> Wrong | None:
        amounts = {key: grown.amount for key in self.metrics if (grown := gpu.grown.get(key)) is not None}
        has_recovered = amounts.get(RECOVERIES, 0) >= 1
        if not has_recovered and all(amounts.get(key, 0) < self.most for key in (FLIT, DATA, REPLAYS)):
            return None
        return Wrong(
            Severity.CRITICAL if has_recovered else Severity.WARNING,
            f"{gpu.name} has errors on its NVLinks"
            + (", and a link had to be brought up anew." if has_recovered else "."),
            "Jobs over several GPUs of this node are slow or hang. Look at nvidia-smi nvlink -e and at the Fabric "
            "Manager's log; drain the node and reset the GPU, and reseat or replace it where the errors come again.",
            amounts | {"most": self.most},
            why="recovered" if has_recovered else "errors",
        )
