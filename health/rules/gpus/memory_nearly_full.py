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
    action: ClassVar[str] = (
        "Jobs here may run out of memory. This is normal for inference and training, and not reported for them."
    )
    limits: Limits = ITS_OWN

    def whole(self, part: float, other: float) -> float:
        return part + other

    def says(self, share: str) -> str:
        return f"has {share} or more of its memory in use"
