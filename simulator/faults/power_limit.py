from dataclasses import dataclass
from typing import ClassVar

from simulator.faults.strain import OnGpu, Strain, not_negative


@dataclass(frozen=True, slots=True)
class PowerLimit(OnGpu):
    """A GPU that somebody has set another power limit: it draws no more than that, and is slower where it would."""

    watts: float = 250.0
    key: ClassVar[str] = "power_limit"

    def __post_init__(self) -> None:
        OnGpu.__post_init__(self)
        object.__setattr__(self, "watts", not_negative("watts", self.watts))

    def bear(self, strain: Strain, *, on_s: float, is_reset: bool) -> None:
        del on_s, is_reset
        strain.most_watts = self.watts
