"""An exporter reports a GPU as unhealthy without a reason, as AMD's does. New pods do not get such a GPU."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from gpu.resources.names import tool_of
from health.rules.base import Severity, Wrong
from health.rules.gpus.base import GpuFacts
from health.telemetry.snapshot import TelemetrySnapshot

METRIC = "called_healthy"


@dataclass(frozen=True)
class CalledUnhealthy:
    key: ClassVar[str] = "gpu-called-unhealthy"
    title: ClassVar[str] = "Reported unhealthy by its exporter"
    after: ClassVar[timedelta] = timedelta(minutes=1)
    metrics: ClassVar[tuple[str, ...]] = (METRIC,)

    def suspects(self, snapshot: TelemetrySnapshot) -> Iterable[int]:
        column = snapshot.columns.get(METRIC)
        return [place for place, value in enumerate(column.values) if value < 1] if column is not None else ()

    def evaluate(self, gpu: GpuFacts) -> Wrong | None:
        if gpu.now.get(METRIC, 1.0) >= 1:
            return None
        return Wrong(
            Severity.CRITICAL,
            f"{gpu.name} is reported unhealthy by its exporter.",
            f"Read the log of the exporter's pod, which says why. Look at {tool_of(gpu.vendor)} and at the kernel log "
            "on the node, drain it, and reset the GPU.",
            {METRIC: gpu.now[METRIC]},
            why="unhealthy",
            probable_cause="Usually memory errors beyond the exporter's thresholds, or a fatal error.",
        )
