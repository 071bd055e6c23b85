"""Memory errors that ECC corrects, many of them: the board wears out, as Xid 92 says. Off by default (Z23)."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import Severity, Wrong
from health.rules.gpus.base import GpuFacts
from health.telemetry.frame import Frame
from health.telemetry.remembering import grown_by

METRIC = "ecc_corrected"


@dataclass(frozen=True)
class EccCorrected:
    key: ClassVar[str] = "gpu-ecc-corrected"
    title: ClassVar[str] = "Many memory errors corrected"
    after: ClassVar[timedelta] = timedelta(minutes=5)
    metrics: ClassVar[tuple[str, ...]] = (METRIC,)
    # Ours: NVIDIA names no rate. One an hour is cosmic rays; a hundred in an hour is a cell.
    most: int = 100

    def suspects(self, frame: Frame) -> Iterable[int]:
        return grown_by(frame, METRIC, self.most)

    def judge(self, gpu: GpuFacts) -> Wrong | None:
        grown = gpu.grown.get(METRIC)
        if grown is None or grown.amount < self.most:
            return None
        return Wrong(
            Severity.WARNING,
            f"{gpu.name} corrects more than {self.most} memory errors an hour.",
            "No result is wrong. Plan a reset for its next quiet hour, so that rows are remapped; if it goes on after "
            "that, run NVIDIA's field diagnostics and ask support.",
            {METRIC: grown.amount, "most": self.most},
            why="rate",
        )
