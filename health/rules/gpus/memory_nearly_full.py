"""Memory near its limit: how inference and training should be (Z28), and so a note where neither runs."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import Severity, Wrong
from health.rules.gpus.base import GpuFacts, is_usual
from health.rules.limits import Limits, Scale
from health.telemetry.frame import Frame

USED, FREE = "memory_used_mib", "memory_free_mib"
ITS_OWN = Limits(97, None, timedelta(minutes=15))


@dataclass(frozen=True)
class MemoryNearlyFull:
    key: ClassVar[str] = "gpu-memory-nearly-full"
    title: ClassVar[str] = "GPU memory nearly full"
    metrics: ClassVar[tuple[str, ...]] = (USED, FREE)
    scale: ClassVar[Scale] = Scale(
        "% of its memory", 50, 100, may_be_critical=False, metric=USED, percent_of=(USED, FREE)
    )
    limits: Limits = ITS_OWN
    usual_for: ClassVar[frozenset[str]] = frozenset({"inference", "training"})

    @property
    def after(self) -> timedelta:
        return self.limits.warn_after

    @property
    def share(self) -> float:
        return self.limits.warn / 100

    def suspects(self, frame: Frame) -> Iterable[int]:
        used, free = frame.columns.get(USED), frame.columns.get(FREE)
        if used is None or free is None:
            return ()
        pairs = enumerate(zip(used.values, free.values, strict=True))
        return [place for place, (has, left) in pairs if has >= self.share * (has + left) > 0]

    def judge(self, gpu: GpuFacts) -> Wrong | None:
        used, free = gpu.now.get(USED), gpu.now.get(FREE)
        if used is None or free is None or used + free <= 0 or used < self.share * (used + free):
            return None
        if is_usual(self.usual_for, gpu.workload_classes):
            return None
        limits = self.limits
        return Wrong(
            Severity.NOTE,
            f"{gpu.name} has {limits.warn:g} % or more of its memory in use{limits.said(is_critical=False)}.",
            "What runs here may end for lack of memory. For inference and training that is usual, and not said.",
            {USED: used, FREE: free, **limits.evidence},
            why=f"{limits.warn:g} {limits.whose}",
        )
