from dataclasses import dataclass
from typing import ClassVar

from simulator.faults.strain import ClockEvent, OnGpu, Strain, not_negative


@dataclass(frozen=True, slots=True)
class HotGpu(OnGpu):
    """A GPU that is cooled badly: its temperature drifts to `celsius`, and its driver and board slow it down.

    `clock_ratio`: what is left of its clocks; 1: it is hot, and nobody slows it down yet.
    """

    celsius: float = 92.0
    clock_ratio: float = 0.7
    key: ClassVar[str] = "hot_gpu"

    def __post_init__(self) -> None:
        OnGpu.__post_init__(self)
        object.__setattr__(self, "celsius", not_negative("celsius", self.celsius))
        object.__setattr__(self, "clock_ratio", not_negative("clock_ratio", self.clock_ratio))

    def bear(self, strain: Strain, *, on_s: float, is_reset: bool) -> None:
        del on_s, is_reset
        strain.celsius = max(self.celsius, strain.celsius or 0.0)
        if self.clock_ratio < 1:
            strain.slow_down(self.clock_ratio, ClockEvent.SW_THERMAL | ClockEvent.HW_THERMAL | ClockEvent.HW_SLOWDOWN)
            strain.health["THERMAL"] = (10, "DCGM_FR_CLOCK_THROTTLE_THERMAL")
