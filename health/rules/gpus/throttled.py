"""A GPU is slowed down by its power brake, its board or for reliability. By heat is what the temperature says, too."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import Severity, Wrong
from health.rules.gpus.base import GpuFacts
from health.telemetry.frame import Frame
from health.telemetry.remembering import grown_by

# Being at the limit of its power is how a training GPU should be (Z28): `throttled_power` is no reason here.
REASONS = {
    "throttled_thermal": "it is too hot",
    "throttled_board": "its board is at a limit (power brake, supply)",
    "throttled_reliability": "its voltage is at a limit",
}


@dataclass(frozen=True)
class Throttled:
    key: ClassVar[str] = "gpu-throttled"
    title: ClassVar[str] = "GPU slowed down"
    after: ClassVar[timedelta] = timedelta(minutes=10)
    metrics: ClassVar[tuple[str, ...]] = tuple(REASONS)

    def suspects(self, frame: Frame) -> Iterable[int]:
        return {place for reason in REASONS for place in grown_by(frame, reason, 1)}

    def judge(self, gpu: GpuFacts) -> Wrong | None:
        amounts = {key: grown.amount for key in REASONS if (grown := gpu.grown.get(key)) is not None and grown.amount}
        if not amounts:
            return None
        because = " and ".join(REASONS[key] for key in amounts)
        return Wrong(
            Severity.WARNING,
            f"{gpu.name} is slowed down: {because}.",
            "Whatever runs on it is slower, and a job over several GPUs as slow as this one. Look at the air and the "
            "power supplies of its chassis; nvidia-smi -q -d PERFORMANCE names the reason as it is now.",
            amounts,
            why=because,
        )
