"""An exporter reports a GPU as unhealthy without a reason, as AMD's does. New pods do not get such a GPU."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from gpu.resources.names import tool_of
from health.rules.base import Problem, Severity
from health.rules.gpus.base import GpuFacts, measured
from health.telemetry.snapshot import TelemetrySnapshot
from wording.reports import fit

METRIC = "called_healthy"


@dataclass(frozen=True)
class CalledUnhealthy:
    key: ClassVar[str] = "gpu-called-unhealthy"
    title: ClassVar[str] = "Reported unhealthy by its exporter"
    after: ClassVar[timedelta] = timedelta(minutes=1)
    metrics: ClassVar[tuple[str, ...]] = (METRIC,)
    steps: ClassVar[tuple[str, ...]] = (
        "Check the GPU's page for findings about its memory or temperature.",
        "Read the log of its exporter's pod, which has the reason, and of its device plugin.",
        "Check the kernel log and the vendor's tool (amd-smi) on the node.",
        "Drain the node, then reset the GPU with the vendor's tool, or reboot the node.",
        "If the report returns, ask the vendor for another board.",
    )

    def suspects(self, snapshot: TelemetrySnapshot) -> Iterable[int]:
        column = snapshot.columns.get(METRIC)
        return [place for place, value in enumerate(column.values) if value < 1] if column is not None else ()

    def evaluate(self, gpu: GpuFacts) -> Problem | None:
        if gpu.now.get(METRIC, 1.0) >= 1:
            return None
        tool = f"Check the kernel log and {tool_of(gpu.vendor)} on the node."
        return Problem(
            severity=Severity.CRITICAL,
            title=fit("{} is reported unhealthy", gpu.name),
            summary="Its exporter reports it. New pods do not get this GPU.",
            evidence=(measured(METRIC, gpu.now[METRIC]),),
            causes=("Memory errors exceed the exporter's thresholds.", "The GPU had a fatal error."),
            steps=(*self.steps[:2], tool, *self.steps[3:]),
            facts={METRIC: gpu.now[METRIC]},
            identity="unhealthy",
        )
