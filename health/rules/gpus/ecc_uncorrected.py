"""Memory errors that ECC could not correct: even one is reported. Not exported by default (Z23).

Without that counter, the rule uses the rows remapped for such errors, which DCGM exports by default. That number
outlasts resets, so only an increase within the last hour is reported. It is a warning: the Xid tells the severity.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import ClassVar

from health.rules.base import Problem, Severity
from health.rules.gpus.base import GpuFacts, devices_at_least, measured
from health.rules.steps import DRAIN, REPLACE, RESET, SAVE_LOGS, UNCORDON
from health.telemetry.snapshot import TelemetrySnapshot
from health.telemetry.snapshot_memory import grown_by
from wording.reports import EvidenceItem, fit, instant

ERRORS, ROWS = "ecc_uncorrected", "rows_remapped_uncorrected"


@dataclass(frozen=True)
class EccUncorrected:
    key: ClassVar[str] = "gpu-ecc-uncorrected"
    title: ClassVar[str] = "Uncorrectable memory errors"
    after: ClassVar[timedelta] = timedelta(0)
    metrics: ClassVar[tuple[str, ...]] = (ERRORS, ROWS)
    own: ClassVar[str] = ERRORS
    instead: ClassVar[str] = "rows that were remapped within the last hour"
    steps: ClassVar[tuple[str, ...]] = (
        "Notify the owners of its jobs. Their results may be wrong.",
        SAVE_LOGS,
        DRAIN,
        RESET,
        "Check whether the row was remapped: nvidia-smi -q -d ROW_REMAPPER",
        REPLACE,
        UNCORDON,
    )

    def suspects(self, snapshot: TelemetrySnapshot) -> Iterable[int]:
        return {*devices_at_least(snapshot, ERRORS, 1), *grown_by(snapshot, ROWS, 1)}

    def evaluate(self, gpu: GpuFacts) -> Problem | None:
        errors, remapped = gpu.now.get(ERRORS), gpu.grown.get(ROWS)
        if errors is not None:
            counted = measured(ERRORS, errors)
            return _problem(gpu, Severity.CRITICAL, "since its driver was loaded", ERRORS, errors, counted)
        if remapped is not None:
            rows = measured(ROWS, remapped.amount)
            within, since = "within the last hour", []
            if remapped.hours > 1:  # no telemetry for a while
                since = [instant("Since", datetime.fromtimestamp(remapped.since, UTC))]
                within = "since its telemetry was last compared"
            return _problem(gpu, Severity.WARNING, within, ROWS, remapped.amount, rows, *since)
        return None


def _problem(
    gpu: GpuFacts, severity: Severity, within: str, metric: str, number: float, *evidence: EvidenceItem
) -> Problem | None:
    """Returns the problem by one metric alone. The other metric cannot resolve it."""
    if number < 1:
        return None
    by = "" if metric == ERRORS else " Rows were remapped for them."
    return Problem(
        severity=severity,
        title=fit("{} had uncorrectable memory errors", gpu.name),
        summary=f"ECC could not correct them {within}.{by}",
        evidence=evidence,
        facts={metric: number},
        identity="uncorrected",
    )
