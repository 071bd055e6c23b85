from dataclasses import dataclass
from typing import ClassVar

from simulator.faults.strain import OnGpu, Strain, not_negative


@dataclass(frozen=True, slots=True)
class SlowNvlink(OnGpu):
    """A GPU that moves `ratio` of what its neighbours in the same job move over NVLink."""

    ratio: float = 0.1
    key: ClassVar[str] = "slow_nvlink"

    def __post_init__(self) -> None:
        OnGpu.__post_init__(self)
        object.__setattr__(self, "ratio", not_negative("ratio", self.ratio))

    def bear(self, strain: Strain, *, on_s: float, is_reset: bool) -> None:
        del on_s, is_reset
        strain.nvlink_ratio = min(strain.nvlink_ratio, self.ratio)
