"""Many memory errors corrected by ECC: the board wears out, as in Xid 92. Not exported by default (Z23)."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import Problem
from health.rules.gpus.base import GpuFacts, measured
from health.rules.limits import Limits, Scale, beyond
from health.rules.steps import DRAIN, REPLACE, RESET, UNCORDON
from health.telemetry.snapshot import TelemetrySnapshot
from health.telemetry.snapshot_memory import grown_an_hour
from wording.reports import fit

METRIC = "ecc_corrected"
# Ours: NVIDIA names no rate. One an hour is cosmic rays; a hundred in an hour is a cell.
ITS_OWN = Limits(100, None, timedelta(minutes=5))


@dataclass(frozen=True)
class EccCorrected:
    key: ClassVar[str] = "gpu-ecc-corrected"
    title: ClassVar[str] = "Many corrected memory errors"
    metrics: ClassVar[tuple[str, ...]] = (METRIC,)
    scale: ClassVar[Scale] = Scale("errors an hour", 1, 100_000)
    steps: ClassVar[tuple[str, ...]] = (
        "No result is wrong. Check the growth in the finding's plots, and wait for the GPU's next idle hour.",
        DRAIN,
        RESET,
        "Check whether rows were remapped: nvidia-smi -q -d ROW_REMAPPER",
        REPLACE,
        UNCORDON,
    )
    limits: Limits = ITS_OWN

    @property
    def after(self) -> timedelta:
        return self.limits.warn_after

    def suspects(self, snapshot: TelemetrySnapshot) -> Iterable[int]:
        return grown_an_hour(snapshot, METRIC, self.limits.warn)

    def evaluate(self, gpu: GpuFacts) -> Problem | None:
        grown = gpu.grown.get(METRIC)
        if grown is None or grown.an_hour < self.limits.warn:
            return None
        return beyond(
            self,
            grown.an_hour,
            title=fit("{} has many corrected memory errors", gpu.name),
            summary="ECC corrects them, and no result is wrong.",
            evidence=(measured(METRIC, grown.an_hour, self.scale.unit),),
            facts={METRIC: grown.an_hour},
            causes=("A memory cell wears out. Radiation alone causes far fewer errors.",),
        )
