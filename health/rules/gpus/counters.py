"""A counter of a GPU that grows faster than its limit."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import Problem
from health.rules.gpus.base import GpuFacts, measured
from health.rules.limits import Limits, Scale, beyond
from health.telemetry.snapshot import TelemetrySnapshot
from health.telemetry.snapshot_memory import grown_an_hour
from wording.reports import fit


@dataclass(frozen=True)
class CounterRule:
    key: ClassVar[str]
    title: ClassVar[str]
    steps: ClassVar[tuple[str, ...]]
    metrics: ClassVar[tuple[str, ...]]  # one metric
    scale: ClassVar[Scale]
    titled: ClassVar[str]  # with {} for the GPU
    summary: ClassVar[str]
    cause: ClassVar[str]
    limits: Limits

    @property
    def after(self) -> timedelta:
        return self.limits.warn_after

    def suspects(self, snapshot: TelemetrySnapshot) -> Iterable[int]:
        return grown_an_hour(snapshot, self.metrics[0], self.limits.warn)

    def evaluate(self, gpu: GpuFacts) -> Problem | None:
        metric = self.metrics[0]
        grown = gpu.grown.get(metric)
        if grown is None or grown.an_hour < self.limits.warn:
            return None
        return beyond(
            self,
            grown.an_hour,
            title=fit(self.titled, gpu.name),
            summary=self.summary,
            evidence=(measured(metric, grown.an_hour, self.scale.unit),),
            facts={metric: grown.an_hour},
            causes=(self.cause,),
        )
