"""DCGM's own health check of a GPU warns or fails. Exporters do not export it by default.

It covers only enabled checks: a check that is disabled in DCGM passes.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import Severity, Wrong
from health.rules.gpus.base import GpuFacts, at_least
from health.telemetry.snapshot import TelemetrySnapshot
from wording.lists import names

METRIC = "dcgm_health"
WARNING, FAILURE = 10, 20  # dcgmHealthWatchResult_enum
MOST = 100  # a higher number is DCGM's word for “not known”
WHOLE = "ALL"  # its watch of the GPU as such: Xids such as 79 and 95


@dataclass(frozen=True)
class DcgmHealth:
    key: ClassVar[str] = "gpu-dcgm-health"
    title: ClassVar[str] = "Reported unhealthy by DCGM"
    after: ClassVar[timedelta] = timedelta(minutes=1)
    metrics: ClassVar[tuple[str, ...]] = (METRIC,)

    def suspects(self, snapshot: TelemetrySnapshot) -> Iterable[int]:
        return at_least(snapshot, METRIC, WARNING)

    def evaluate(self, gpu: GpuFacts) -> Wrong | None:
        parts = {watch: result for watch, result in gpu.parts.get(METRIC, {}).items() if result <= MOST}
        worst = max(parts.values(), default=gpu.now.get(METRIC, 0.0))
        if not WARNING <= worst <= MOST:
            return None
        failed = sorted(watch for watch, result in parts.items() if FAILURE <= result <= MOST)
        warned = sorted(watch for watch, result in parts.items() if WARNING <= result < FAILURE)
        is_failure = worst >= FAILURE
        watches = [_said(watch) for watch in (failed if is_failure else warned)]
        which = f" of {names(watches)}" if watches else ""
        return Wrong(
            Severity.CRITICAL if is_failure else Severity.WARNING,
            f"{gpu.name}: DCGM’s check{which} {'fails' if is_failure else 'warns'}.",
            "Run dcgmi health -c on the node for the reason. Drain the node before dcgmi diag, which "
            "takes the GPU for minutes."
            if is_failure
            else "Run dcgmi health -c on the node for the reason. It interrupts no work.",
            parts or {METRIC: worst},
            why=f"{is_failure} {' '.join(failed if is_failure else warned)}",
        )


def _said(watch: str) -> str:
    return "the GPU as a whole" if watch == WHOLE else watch
