"""Many memory errors corrected by ECC: the board wears out, as in Xid 92. Not exported by default (Z23)."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import Wrong
from health.rules.gpus.base import GpuFacts
from health.rules.limits import Limits, Scale, beyond
from health.telemetry.snapshot import TelemetrySnapshot
from health.telemetry.snapshot_memory import grown_an_hour

METRIC = "ecc_corrected"
# Ours: NVIDIA names no rate. One an hour is cosmic rays; a hundred in an hour is a cell.
ITS_OWN = Limits(100, None, timedelta(minutes=5))


@dataclass(frozen=True)
class EccCorrected:
    key: ClassVar[str] = "gpu-ecc-corrected"
    title: ClassVar[str] = "Many corrected memory errors"
    metrics: ClassVar[tuple[str, ...]] = (METRIC,)
    scale: ClassVar[Scale] = Scale("errors an hour", 1, 100_000)
    limits: Limits = ITS_OWN

    @property
    def after(self) -> timedelta:
        return self.limits.warn_after

    def suspects(self, snapshot: TelemetrySnapshot) -> Iterable[int]:
        return grown_an_hour(snapshot, METRIC, self.limits.warn)

    def evaluate(self, gpu: GpuFacts) -> Wrong | None:
        grown = gpu.grown.get(METRIC)
        if grown is None or grown.an_hour < self.limits.warn:
            return None
        return beyond(
            self.limits,
            METRIC,
            grown.an_hour,
            lambda limit: f"{gpu.name} corrects {limit:g} memory errors an hour, or more",
            "No result is wrong. Plan a reset for its next idle hour, so that rows are remapped. If "
            "the errors continue, run its vendor's field diagnostics and ask support.",
            "A memory cell wears out. Radiation alone causes far fewer errors.",
        )
