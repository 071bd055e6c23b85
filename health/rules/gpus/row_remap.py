"""Memory rows await remapping at the next reset, or cannot be remapped any more, as in Xid 63 and 64."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import Severity, Wrong
from health.rules.gpus.base import GpuFacts, at_least
from health.telemetry.snapshot import TelemetrySnapshot

FAILED, PENDING = "row_remap_failed", "row_remap_pending"


@dataclass(frozen=True)
class RowRemap:
    key: ClassVar[str] = "gpu-row-remap"
    title: ClassVar[str] = "Memory rows to be remapped"
    after: ClassVar[timedelta] = timedelta(0)
    metrics: ClassVar[tuple[str, ...]] = (FAILED, PENDING)

    def suspects(self, snapshot: TelemetrySnapshot) -> Iterable[int]:
        return {*at_least(snapshot, FAILED, 1), *at_least(snapshot, PENDING, 1)}

    def evaluate(self, gpu: GpuFacts) -> Wrong | None:
        evidence = {FAILED: gpu.now.get(FAILED), PENDING: gpu.now.get(PENDING)}
        if gpu.now.get(FAILED, 0) >= 1:
            return Wrong(
                Severity.CRITICAL,
                f"{gpu.name} could not remap a row of its memory.",
                "Drain the node, run NVIDIA's field diagnostics and have the board replaced.",
                evidence,
                why="failed",
                probable_cause="It has no spare row left there.",
            )
        if gpu.now.get(PENDING, 0) >= 1:
            return Wrong(
                Severity.WARNING,
                f"{gpu.name} waits for a reset to remap a row of its memory.",
                "In its next idle hour, drain the node, then reset the GPU or reboot. Until then the bad "
                "row is in use.",
                evidence,
                why="pending",
            )
        return None
