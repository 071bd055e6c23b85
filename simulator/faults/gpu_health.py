from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from simulator.faults.strain import OnGpu, Strain

WATCHES = ("PCIE", "NVLINK", "PMU", "MCU", "MEM", "SM", "INFOROM", "THERMAL", "POWER", "DRIVER", "ALL")


class Result(StrEnum):
    WARN = "warn"
    FAIL = "fail"


NUMBERS = {Result.WARN: 10, Result.FAIL: 20}


@dataclass(frozen=True, slots=True)
class GpuHealth(OnGpu):
    """One of DCGM's own health watches is not content; exporters show it where DCGM_EXP_GPU_HEALTH_STATUS is on."""

    watch: str = "INFOROM"
    result: Result = Result.FAIL
    code: str = "DCGM_FR_CORRUPT_INFOROM"
    key: ClassVar[str] = "gpu_health"

    def __post_init__(self) -> None:
        OnGpu.__post_init__(self)
        object.__setattr__(self, "result", Result(self.result))
        if self.watch not in WATCHES:
            raise ValueError(f"watch {self.watch!r} is none of {', '.join(WATCHES)}")

    def bear(self, strain: Strain, *, on_s: float, is_reset: bool) -> None:
        del on_s, is_reset
        strain.health[self.watch] = (NUMBERS[self.result], self.code)
