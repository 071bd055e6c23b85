from dataclasses import dataclass
from typing import ClassVar

from simulator.faults.strain import ClockEvent, OnGpu, Strain, not_negative


@dataclass(frozen=True, slots=True)
class ThrottledGpu(OnGpu):
    """A GPU whose clocks are held down; `reason` as DCGM's exporter spells it: power_cap, sync_boost and the like."""

    reason: str = "hw_power_brake"
    clock_ratio: float = 0.5
    key: ClassVar[str] = "throttled_gpu"

    def __post_init__(self) -> None:
        OnGpu.__post_init__(self)
        object.__setattr__(self, "clock_ratio", not_negative("clock_ratio", self.clock_ratio))
        if self.reason.upper() not in ClockEvent.__members__:
            known = ", ".join(each.lower() for each in ClockEvent.__members__)
            raise ValueError(f"reason {self.reason!r} is none of {known}")

    def bear(self, strain: Strain, *, on_s: float, is_reset: bool) -> None:
        del on_s, is_reset
        strain.slow_down(self.clock_ratio, ClockEvent[self.reason.upper()])
