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
    action: ClassVar[str] = (
        "At the limit its clocks drop, and jobs are slower. Compare its limit with those of the "
        "node's other GPUs: somebody may have lowered it. This is normal for training, and not "
        "reported there."
    )
    limits: Limits = ITS_OWN

    def whole(self, part: float, other: float) -> float:
        return other

    def says(self, share: str) -> str:
        return f"draws {share} or more of the power that it may"
