"""A part of a whole near its limit, in percent: a note, unless it is normal for the workload (Z28)."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import Severity, Wrong
from health.rules.gpus.base import GpuFacts, is_usual
from health.rules.limits import Limits
from health.telemetry.snapshot import TelemetrySnapshot


@dataclass(frozen=True)
class ShareRule:
    metrics: ClassVar[tuple[str, ...]]  # two: the part, and what says how large the whole is
    usual_for: ClassVar[frozenset[str]]
    action: ClassVar[str]
    limits: Limits

    @property
    def after(self) -> timedelta:
        return self.limits.warn_after

    def suspects(self, snapshot: TelemetrySnapshot) -> Iterable[int]:
        part, other = (snapshot.columns.get(metric) for metric in self.metrics)
        if part is None or other is None:
            return ()
        share, whole = self.limits.warn / 100, self.whole
        pairs = enumerate(zip(part.values, other.values, strict=True))
        return [place for place, (has, beside) in pairs if has >= share * whole(has, beside) > 0]

    def evaluate(self, gpu: GpuFacts) -> Wrong | None:
        values = {metric: gpu.now[metric] for metric in self.metrics if metric in gpu.now}
        if len(values) < len(self.metrics) or not self._is_near(*values.values()):
            return None
        if is_usual(self.usual_for, gpu.workload_classes):
            return None
        limits = self.limits
        return Wrong(
            Severity.NOTE,
            f"{gpu.name} {self.says(f'{limits.warn:g} %')}{limits.describe(is_critical=False)}.",
            self.action,
            {**values, **limits.evidence},
            why=f"{limits.warn:g} {limits.whose}",
        )

    def whole(self, part: float, other: float) -> float:
        """Returns the whole that `part` belongs to, from the two metrics."""
        raise NotImplementedError

    def says(self, share: str) -> str:
        """Returns a sentence for a GPU at that share or more, without the GPU's name and without a full stop."""
        raise NotImplementedError

    def _is_near(self, part: float, other: float) -> bool:
        return part >= self.limits.warn / 100 * self.whole(part, other) > 0
