"""A part of a whole near its limit, in percent: a note, unless it is normal for the workload (Z28)."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import Problem, Severity
from health.rules.gpus.base import GpuFacts, is_usual, measured
from health.rules.limits import Limits, Scale
from health.telemetry.snapshot import TelemetrySnapshot
from wording.reports import fit


@dataclass(frozen=True)
class ShareRule:
    metrics: ClassVar[tuple[str, ...]]  # two metrics: the part and the whole
    usual_for: ClassVar[frozenset[str]]
    titled: ClassVar[str]  # with {} for the GPU
    scale: ClassVar[Scale]
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

    def evaluate(self, gpu: GpuFacts) -> Problem | None:
        values = {metric: gpu.now[metric] for metric in self.metrics if metric in gpu.now}
        if len(values) < len(self.metrics) or not self._is_near(*values.values()):
            return None
        if is_usual(self.usual_for, gpu.workload_classes):
            return None
        limits = self.limits
        return Problem(
            severity=Severity.NOTE,
            title=fit(self.titled, gpu.name),
            summary=f"It is at {limits.warn:g} {self.scale.unit} or more.",
            evidence=(
                *(measured(metric, value) for metric, value in values.items()),
                *limits.evidence(self.scale.unit, is_critical=False),
            ),
            facts={**values, **limits.facts},
            identity=f"{limits.warn:g} {limits.whose}",
        )

    def whole(self, part: float, other: float) -> float:
        """Returns the whole that `part` belongs to, from the two metrics."""
        raise NotImplementedError

    def _is_near(self, part: float, other: float) -> bool:
        return part >= self.limits.warn / 100 * self.whole(part, other) > 0
