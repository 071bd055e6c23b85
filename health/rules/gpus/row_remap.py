"""Memory rows await remapping at the next reset, or cannot be remapped any more, as in Xid 63 and 64."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import Problem, Severity
from health.rules.gpus.base import GpuFacts, devices_at_least, measured
from health.rules.steps import DRAIN, RESET, UNCORDON
from health.telemetry.snapshot import TelemetrySnapshot
from wording.reports import fit

FAILED, PENDING = "row_remap_failed", "row_remap_pending"


@dataclass(frozen=True)
class RowRemap:
    key: ClassVar[str] = "gpu-row-remap"
    title: ClassVar[str] = "Memory rows to be remapped"
    after: ClassVar[timedelta] = timedelta(0)
    metrics: ClassVar[tuple[str, ...]] = (FAILED, PENDING)
    steps: ClassVar[tuple[str, ...]] = (
        "Check the state: nvidia-smi -q -d ROW_REMAPPER on the node.",
        DRAIN,
        "If a remap is pending, reset the GPU (nvidia-smi -r -i UUID), or reboot the node.",
        "If a remap failed, run NVIDIA's field diagnostics and have the board replaced.",
        UNCORDON,
    )

    def suspects(self, snapshot: TelemetrySnapshot) -> Iterable[int]:
        return {*devices_at_least(snapshot, FAILED, 1), *devices_at_least(snapshot, PENDING, 1)}

    def evaluate(self, gpu: GpuFacts) -> Problem | None:
        values = {key: gpu.now[key] for key in self.metrics if key in gpu.now}
        evidence = tuple(measured(key, int(value)) for key, value in values.items())
        facts = {FAILED: gpu.now.get(FAILED), PENDING: gpu.now.get(PENDING)}
        if gpu.now.get(FAILED, 0) >= 1:
            return Problem(
                severity=Severity.CRITICAL,
                title=fit("{} could not remap a memory row", gpu.name),
                summary="A faulty row stays in use.",
                evidence=evidence,
                causes=("The GPU has no spare row left there.",),
                steps=(DRAIN, "Run NVIDIA's field diagnostics.", "Have the board replaced.", UNCORDON),
                facts=facts,
                identity="failed",
            )
        if gpu.now.get(PENDING, 0) >= 1:
            return Problem(
                severity=Severity.WARNING,
                title=fit("{} needs a reset to remap a memory row", gpu.name),
                summary="The faulty row stays in use until then.",
                evidence=evidence,
                steps=("Wait for the GPU's next idle hour.", DRAIN, RESET, UNCORDON),
                facts=facts,
                identity="pending",
            )
        return None
