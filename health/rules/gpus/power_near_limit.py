"""Power near its limit: how training should be (Z28), and so a note where none runs."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import Severity, Wrong
from health.rules.gpus.base import GpuFacts, is_usual
from health.rules.limits import Limits, Scale
from health.telemetry.frame import Frame

POWER, LIMIT = "power_watts", "power_limit_watts"  # the second is exported where somebody switched it on
ITS_OWN = Limits(97, None, timedelta(minutes=15))


@dataclass(frozen=True)
class PowerNearLimit:
    key: ClassVar[str] = "gpu-power-near-limit"
    title: ClassVar[str] = "GPU power near its limit"
    metrics: ClassVar[tuple[str, ...]] = (POWER, LIMIT)
    scale: ClassVar[Scale] = Scale(
        "% of its power limit", 50, 100, may_be_critical=False, metric=POWER, percent_of=(LIMIT,)
    )
    limits: Limits = ITS_OWN
    usual_for: ClassVar[frozenset[str]] = frozenset({"training"})

    @property
    def after(self) -> timedelta:
        return self.limits.warn_after

    @property
    def share(self) -> float:
        return self.limits.warn / 100

    def suspects(self, frame: Frame) -> Iterable[int]:
        drawn, limit = frame.columns.get(POWER), frame.columns.get(LIMIT)
        if drawn is None or limit is None:
            return ()
        pairs = enumerate(zip(drawn.values, limit.values, strict=True))
        return [place for place, (watts, most) in pairs if watts >= self.share * most > 0]

    def judge(self, gpu: GpuFacts) -> Wrong | None:
        watts, most = gpu.now.get(POWER), gpu.now.get(LIMIT)
        if watts is None or most is None or most <= 0 or watts < self.share * most:
            return None
        if is_usual(self.usual_for, gpu.workload_classes):
            return None
        limits = self.limits
        return Wrong(
            Severity.NOTE,
            f"{gpu.name} draws {limits.warn:g} % or more of the power that it may{limits.said(is_critical=False)}.",
            "At its limit its clocks are held down, and what runs here is slower. Compare its limit with those of its "
            "neighbours: somebody may have lowered it. For training that is usual, and not said.",
            {POWER: watts, LIMIT: most, **limits.evidence},
            why=f"{limits.warn:g} {limits.whose}",
        )
