"""Memory errors that ECC could not correct: even one is reported. Not exported by default (Z23).

Without that counter, the rule uses the rows remapped for such errors, which DCGM exports by default. That number
outlasts resets, so only an increase within the last hour is reported. It is a warning: the Xid tells the severity.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import ClassVar

from health.rules.base import Severity, Wrong
from health.rules.gpus.base import GpuFacts, at_least
from health.telemetry.snapshot import TelemetrySnapshot
from health.telemetry.snapshot_memory import grown_by
from wording.instants import to_the_minute

ERRORS, ROWS = "ecc_uncorrected", "rows_remapped_uncorrected"
SAID = "{} has had memory errors that ECC could not correct"


@dataclass(frozen=True)
class EccUncorrected:
    key: ClassVar[str] = "gpu-ecc-uncorrected"
    title: ClassVar[str] = "Uncorrectable memory errors"
    after: ClassVar[timedelta] = timedelta(0)
    metrics: ClassVar[tuple[str, ...]] = (ERRORS, ROWS)
    own: ClassVar[str] = ERRORS
    instead: ClassVar[str] = "rows that were remapped within the last hour"

    def suspects(self, snapshot: TelemetrySnapshot) -> Iterable[int]:
        return {*at_least(snapshot, ERRORS, 1), *grown_by(snapshot, ROWS, 1)}

    def evaluate(self, gpu: GpuFacts) -> Wrong | None:
        errors, remapped = gpu.now.get(ERRORS), gpu.grown.get(ROWS)
        if errors is not None:
            return _wrong(Severity.CRITICAL, f"{SAID.format(gpu.name)} since its driver was loaded.", ERRORS, errors)
        if remapped is not None:
            within = "within the last hour"
            if remapped.hours > 1:  # it was not heard for a while
                within = f"since {to_the_minute(datetime.fromtimestamp(remapped.since, UTC))}"
            by = f"{SAID.format(gpu.name)} {within}, by the rows that were remapped for them."
            return _wrong(Severity.WARNING, by, ROWS, remapped.amount)
        return None


def _wrong(severity: Severity, sentence: str, metric: str, number: float) -> Wrong | None:
    """Returns trouble by one metric alone. The other metric cannot resolve it."""
    if number < 1:
        return None
    return Wrong(
        severity,
        sentence,
        "Jobs on it may have computed wrong results: tell their owner. Drain the node and reset "
        "the GPU, so that the row is remapped. If remapping fails, or the errors return, replace "
        "the board.",
        {metric: number},
        why="uncorrected",
    )
