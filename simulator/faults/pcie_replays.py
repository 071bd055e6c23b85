from dataclasses import dataclass
from typing import ClassVar

from simulator.faults.strain import OnGpu, Strain, not_negative


@dataclass(frozen=True, slots=True)
class PcieReplays(OnGpu):
    """A GPU that sits badly in its slot: packets on PCIe are sent again, so many a minute."""

    per_minute: float = 60.0
    key: ClassVar[str] = "pcie_replays"

    def __post_init__(self) -> None:
        OnGpu.__post_init__(self)
        object.__setattr__(self, "per_minute", not_negative("per_minute", self.per_minute))

    def bear(self, strain: Strain, *, on_s: float, is_reset: bool) -> None:
        del on_s, is_reset
        strain.count("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", self.per_minute / 60)
