"""A GPU is so hot that it slows down, or is about to: 83 °C for five minutes, and 85 °C."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import Wrong
from health.rules.gpus.base import GpuFacts, at_least
from health.rules.limits import Limits, Scale, beyond
from health.telemetry.frame import Frame

METRIC = "temperature_celsius"
ITS_OWN = Limits(83, 85, timedelta(minutes=5), timedelta(minutes=5))


@dataclass(frozen=True)
class Hot:
    key: ClassVar[str] = "gpu-hot"
    title: ClassVar[str] = "GPU too hot"
    metrics: ClassVar[tuple[str, ...]] = (METRIC,)
    scale: ClassVar[Scale] = Scale("°C", 40, 110, metric=METRIC)
    limits: Limits = ITS_OWN

    @property
    def after(self) -> timedelta:
        return self.limits.warn_after

    def suspects(self, frame: Frame) -> Iterable[int]:
        return at_least(frame, METRIC, self.limits.warn)

    def judge(self, gpu: GpuFacts) -> Wrong | None:
        celsius = gpu.now.get(METRIC)
        if celsius is None or celsius < self.limits.warn:
            return None
        return beyond(
            self.limits,
            METRIC,
            celsius,
            lambda limit: f"{gpu.name} has {limit:g} °C or more",
            "Look at its neighbours first: they tell which it is. It slows itself down before it is damaged.",
            "The air, where its neighbours are hot, too (inlet, fans, a blocked rack); else its cooler or power limit.",
        )
