from dataclasses import dataclass
from typing import ClassVar

from simulator.faults.strain import OnGpu, Strain, not_negative

OFF_THE_BUS = 79


@dataclass(frozen=True, slots=True)
class FallenGpu(OnGpu):
    """A GPU that falls off the bus: Xid 79 at once, and after `after_s` seconds its exporter knows it no more.

    The device plugin takes it out of what is allocatable at once. A reboot brings it back, unless it `stays`: then its
    board is broken.
    """

    after_s: float = 60.0
    stays: bool = False
    key: ClassVar[str] = "fallen_gpu"

    def __post_init__(self) -> None:
        OnGpu.__post_init__(self)
        object.__setattr__(self, "after_s", not_negative("after_s", self.after_s))
        object.__setattr__(self, "stays", str(self.stays).lower() == "true")

    @property
    def ends_with_reboot(self) -> bool:
        return not self.stays

    def bear(self, strain: Strain, *, on_s: float, is_reset: bool) -> None:
        del is_reset
        strain.work_ratio = 0.0
        strain.is_gone = strain.is_gone or on_s >= self.after_s
        strain.health["ALL"] = (20, "DCGM_FR_XID_ERROR")

    def xids(self, after_s: float, until_s: float) -> list[tuple[float, int]]:
        return [(0.0, OFF_THE_BUS)] if after_s < 0 <= until_s else []
