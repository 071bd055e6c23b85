"""DCGM's own health check of a GPU warns or fails. Exporters do not export it by default.

It covers only enabled checks: a check that is disabled in DCGM passes.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import Problem, Severity
from health.rules.gpus.base import GpuFacts, devices_at_least, measured
from health.rules.steps import DIAGNOSE, DRAIN, REPLACE, RESET, UNCORDON
from health.telemetry.snapshot import TelemetrySnapshot
from wording.lists import names
from wording.reports import EvidenceItem, fit

METRIC = "dcgm_health"
ASK = "Run dcgmi health -c on the node for the reason."
WARNING, FAILURE = 10, 20  # dcgmHealthWatchResult_enum
MOST = 100  # a higher number is DCGM's word for “not known”
WHOLE = "ALL"  # its watch of the GPU as such: Xids such as 79 and 95


@dataclass(frozen=True)
class DcgmHealth:
    key: ClassVar[str] = "gpu-dcgm-health"
    title: ClassVar[str] = "Reported unhealthy by DCGM"
    after: ClassVar[timedelta] = timedelta(minutes=1)
    metrics: ClassVar[tuple[str, ...]] = (METRIC,)
    steps: ClassVar[tuple[str, ...]] = (
        ASK,
        DRAIN,
        DIAGNOSE,
        RESET,
        REPLACE,
        UNCORDON,
    )

    def suspects(self, snapshot: TelemetrySnapshot) -> Iterable[int]:
        return devices_at_least(snapshot, METRIC, WARNING)

    def evaluate(self, gpu: GpuFacts) -> Problem | None:
        parts = {watch: result for watch, result in gpu.parts.get(METRIC, {}).items() if result <= MOST}
        worst = max(parts.values(), default=gpu.now.get(METRIC, 0.0))
        if not WARNING <= worst <= MOST:
            return None
        failed = sorted(watch for watch, result in parts.items() if FAILURE <= result <= MOST)
        warned = sorted(watch for watch, result in parts.items() if WARNING <= result < FAILURE)
        is_failure = worst >= FAILURE
        watches = failed if is_failure else warned
        which = "the GPU as a whole" if watches == [WHOLE] else names(watches) if watches else "the GPU"
        return Problem(
            severity=Severity.CRITICAL if is_failure else Severity.WARNING,
            title=fit("DCGM health check of {} {}", gpu.name, "fails" if is_failure else "warns"),
            summary=f"The check of {which} {'fails' if is_failure else 'warns'}.",
            evidence=(
                *(EvidenceItem(f"Failing check {watch}", parts[watch]) for watch in failed),
                *(EvidenceItem(f"Warning check {watch}", parts[watch]) for watch in warned),
                *(() if parts else (measured(METRIC, worst),)),
            ),
            steps=() if is_failure else (ASK, "The command interrupts no work."),
            facts=parts or {METRIC: worst},
            identity=f"{is_failure} {' '.join(watches)}",
        )
