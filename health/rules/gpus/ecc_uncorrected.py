"""Memory errors that ECC could not correct: any is one too many. Off by default at exporters (Z23)."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import Severity, Wrong
from health.rules.gpus.base import GpuFacts, at_least
from health.telemetry.frame import Frame

ERRORS, ROWS = "ecc_uncorrected", "rows_remapped_uncorrected"


@dataclass(frozen=True)
class EccUncorrected:
    key: ClassVar[str] = "gpu-ecc-uncorrected"
    title: ClassVar[str] = "Memory errors not corrected"
    after: ClassVar[timedelta] = timedelta(0)
    metrics: ClassVar[tuple[str, ...]] = (ERRORS,)

    def suspects(self, frame: Frame) -> Iterable[int]:
        return at_least(frame, ERRORS, 1)

    def judge(self, gpu: GpuFacts) -> Wrong | None:
        errors = gpu.now.get(ERRORS, 0)
        if errors < 1:
            return None
        return Wrong(
            Severity.CRITICAL,
            f"{gpu.name} has had memory errors that ECC could not correct since its driver was loaded.",
            "What ran on it may have computed with wrong numbers: tell its owner. Drain the node and reset the GPU, so "
            "that the row is remapped; where remapping fails, or it comes again, the board is to be replaced.",
            {ERRORS: errors, ROWS: gpu.now.get(ROWS)},
            why="uncorrected",
        )
