"""Many memory errors corrected by ECC: the board wears out, as in Xid 92. Not exported by default (Z23)."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.gpus.counters import CounterRule
from health.rules.limits import Limits, Scale
from health.rules.steps import DRAIN, REPLACE, RESET, UNCORDON

METRIC = "ecc_corrected"
# Ours: NVIDIA names no rate. One an hour is cosmic rays; a hundred in an hour is a cell.
ITS_OWN = Limits(100, None, timedelta(minutes=5))


@dataclass(frozen=True)
class EccCorrected(CounterRule):
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
    titled: ClassVar[str] = "{} has many corrected memory errors"
    summary: ClassVar[str] = "ECC corrects them, and no result is wrong."
    cause: ClassVar[str] = "A memory cell wears out. Radiation alone causes far fewer errors."
    limits: Limits = ITS_OWN
