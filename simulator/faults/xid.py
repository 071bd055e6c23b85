from dataclasses import dataclass
from typing import ClassVar

from simulator.faults.strain import OnGpu, not_negative, pause

MOST_TIMES = 100_000


@dataclass(frozen=True, slots=True)
class Xid(OnGpu):
    """The driver reports an Xid: once, or `times` times, every `every_s` seconds.

    The exporter's gauge keeps the last one until the driver is loaded anew, or the exporter started; the same one
    again does not show there. `is_withdrawn`: the device plugin takes the GPU out of what is allocatable.
    """

    code: int = 31
    times: int = 1
    every_s: float = 5.0
    is_withdrawn: bool = False
    key: ClassVar[str] = "xid"

    def __post_init__(self) -> None:
        OnGpu.__post_init__(self)
        object.__setattr__(self, "code", int(not_negative("code", self.code)))
        object.__setattr__(self, "times", int(not_negative("times", self.times)))
        object.__setattr__(self, "every_s", pause("every_s", self.every_s))
        object.__setattr__(self, "is_withdrawn", str(self.is_withdrawn).lower() == "true")
        if not 1 <= self.times <= MOST_TIMES:
            raise ValueError(f"times is from 1 to {MOST_TIMES}")

    def xids(self, after_s: float, until_s: float) -> list[tuple[float, int]]:
        if not self.every_s:
            return [(0.0, self.code)] * self.times if after_s < 0 <= until_s else []
        first = 0 if after_s < 0 else int(after_s // self.every_s) + 1
        last = min(int(until_s // self.every_s), self.times - 1)
        return [(number * self.every_s, self.code) for number in range(first, last + 1)]
