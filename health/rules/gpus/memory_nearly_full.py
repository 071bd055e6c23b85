"""Memory near its limit. This is normal for inference and training (Z28), so a note is given only elsewhere."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.gpus.shares import ShareRule
from health.rules.limits import Limits, Scale

USED, FREE = "memory_used_mib", "memory_free_mib"
ITS_OWN = Limits(97, None, timedelta(minutes=15))


@dataclass(frozen=True)
class MemoryNearlyFull(ShareRule):
    key: ClassVar[str] = "gpu-memory-nearly-full"
    title: ClassVar[str] = "GPU memory nearly full"
    metrics: ClassVar[tuple[str, ...]] = (USED, FREE)
    scale: ClassVar[Scale] = Scale(
        "% of its memory", 50, 100, may_be_critical=False, metric=USED, percent_of=(USED, FREE)
    )
    usual_for: ClassVar[frozenset[str]] = frozenset({"inference", "training"})
    titled: ClassVar[str] = "Memory of {} is nearly full"
    steps: ClassVar[tuple[str, ...]] = (
        "Check which pods use it, under Impact.",
        "If this is normal there, give the pool its workload class, or limits of its own.",
        "Otherwise ask the owner whether the job needs so much. It ends when memory runs out.",
    )
    limits: Limits = ITS_OWN

    def whole(self, part: float, other: float) -> float:
        return part + other
