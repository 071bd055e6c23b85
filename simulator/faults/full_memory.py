from dataclasses import dataclass
from typing import ClassVar

from simulator.faults.strain import OnGpu, Strain, not_negative


@dataclass(frozen=True, slots=True)
class FullMemory(OnGpu):
    """A pod whose program takes memory of its GPU and gives none back, until so much of it is used."""

    used_ratio: float = 0.995
    key: ClassVar[str] = "full_memory"

    def __post_init__(self) -> None:
        OnGpu.__post_init__(self)
        object.__setattr__(self, "used_ratio", min(1.0, not_negative("used_ratio", self.used_ratio)))

    def bear(self, strain: Strain, *, on_s: float, is_reset: bool) -> None:
        del on_s, is_reset
        strain.memory_ratio = max(strain.memory_ratio, self.used_ratio)
