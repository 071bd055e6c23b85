from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from simulator.faults.strain import OnGpu, Strain, not_negative


class LinkError(StrEnum):
    CRC_FLIT = "crc_flit"
    CRC_DATA = "crc_data"
    REPLAY = "replay"
    RECOVERY = "recovery"


@dataclass(frozen=True, slots=True)
class NvlinkErrors(OnGpu):
    """Errors of one kind on a GPU's NVLinks, so many a minute; exporters show them only where these are switched on."""

    how: LinkError = LinkError.CRC_DATA
    per_minute: float = 60.0
    key: ClassVar[str] = "nvlink_errors"

    def __post_init__(self) -> None:
        OnGpu.__post_init__(self)
        object.__setattr__(self, "how", LinkError(self.how))
        object.__setattr__(self, "per_minute", not_negative("per_minute", self.per_minute))

    def bear(self, strain: Strain, *, on_s: float, is_reset: bool) -> None:
        del on_s, is_reset
        strain.count(f"DCGM_FI_DEV_NVLINK_{self.how.upper()}_ERROR_COUNT_TOTAL", self.per_minute / 60)
