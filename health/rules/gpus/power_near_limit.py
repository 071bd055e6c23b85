"""Power near its limit. This is normal for training (Z28), so a note is given only elsewhere."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.gpus.shares import ShareRule
from health.rules.limits import Limits, Scale

POWER, LIMIT = "power_watts", "power_limit_watts"  # the second is exported where somebody switched it on
ITS_OWN = Limits(97, None, timedelta(minutes=15))


@dataclass(frozen=True)
class PowerNearLimit(ShareRule):
    key: ClassVar[str] = "gpu-power-near-limit"
    title: ClassVar[str] = "GPU power near its limit"
    metrics: ClassVar[tuple[str, ...]] = (POWER, LIMIT)
    scale: ClassVar[Scale] = Scale(
        "% of its power limit", 50, 100, may_be_critical=False, metric=POWER, percent_of=(LIMIT,)
    )
    usual_for: ClassVar[frozenset[str]] = frozenset({"training"})
    titled: ClassVar[str] = "Power of {} is near its limit"
    steps: ClassVar[tuple[str, ...]] = (
        "Compare its power limit with the node's other GPUs (nvidia-smi -q -d POWER). A person may have lowered it.",
        "If this is normal there, give the pool its workload class, or limits of its own.",
    )
    limits: Limits = ITS_OWN

    def whole(self, part: float, other: float) -> float:
        return other
