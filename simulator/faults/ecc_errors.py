from dataclasses import dataclass
from typing import ClassVar

from simulator.faults.strain import OnGpu, Strain, not_negative

HOUR_S = 3600.0
CORRECTED = ("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL")
UNCORRECTED = ("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL")


@dataclass(frozen=True, slots=True)
class EccErrors(OnGpu):
    """Memory that fails: bits that ECC corrects, so many in an hour; and words that it cannot, so many at once.

    Exporters show neither unless their counters are switched on.
    """

    corrected_per_hour: float = 0.0
    uncorrected: int = 0
    key: ClassVar[str] = "ecc_errors"

    def __post_init__(self) -> None:
        OnGpu.__post_init__(self)
        rate = not_negative("corrected_per_hour", self.corrected_per_hour)
        object.__setattr__(self, "corrected_per_hour", rate)
        object.__setattr__(self, "uncorrected", int(not_negative("uncorrected", self.uncorrected)))
        if not rate and not self.uncorrected:
            raise ValueError("corrected_per_hour or uncorrected is more than 0")

    def bear(self, strain: Strain, *, on_s: float, is_reset: bool) -> None:
        del on_s
        for counter in CORRECTED:
            strain.count(counter, self.corrected_per_hour / HOUR_S)
        if self.uncorrected and not is_reset:
            strain.health["MEM"] = (20, "DCGM_FR_VOLATILE_DBE_DETECTED")

    def at_start(self) -> dict[str, int]:
        return dict.fromkeys(UNCORRECTED, self.uncorrected)
