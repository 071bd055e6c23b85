"""A GPU is so hot that it slows down, or is about to: 83 °C for five minutes, and 85 °C (mission H2)."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import Severity, Wrong
from health.rules.gpus.base import GpuFacts, at_least
from health.telemetry.frame import Frame

METRIC = "temperature_celsius"


@dataclass(frozen=True)
class Hot:
    key: ClassVar[str] = "gpu-hot"
    title: ClassVar[str] = "GPU too hot"
    after: ClassVar[timedelta] = timedelta(minutes=5)
    metrics: ClassVar[tuple[str, ...]] = (METRIC,)
    warn_celsius: float = 83.0
    critical_celsius: float = 85.0

    def suspects(self, frame: Frame) -> Iterable[int]:
        return at_least(frame, METRIC, self.warn_celsius)

    def judge(self, gpu: GpuFacts) -> Wrong | None:
        celsius = gpu.now.get(METRIC)
        if celsius is None or celsius < self.warn_celsius:
            return None
        is_critical = celsius >= self.critical_celsius
        limit = self.critical_celsius if is_critical else self.warn_celsius
        return Wrong(
            Severity.CRITICAL if is_critical else Severity.WARNING,
            f"{gpu.name} has had {limit:.0f} °C or more for five minutes.",
            "Look at its neighbours first: where they are hot, too, it is the air (inlet, fans, a blocked rack). One "
            "that is hot alone has a cooler or a power limit to look at. It slows itself down before it is damaged.",
            {METRIC: celsius, "warn": self.warn_celsius, "critical": self.critical_celsius},
            why=f"{limit:.0f}",
            worsens_after=self.after,
        )
