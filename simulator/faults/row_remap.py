from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from simulator.faults.strain import OnGpu, Strain, not_negative


class Remap(StrEnum):
    PENDING = "pending"  # spare rows take the place of bad ones at the next reset
    FAILED = "failed"  # none are left
    CORRECTABLE = "correctable"  # done already, for rows whose errors were corrected


@dataclass(frozen=True, slots=True)
class RowRemap(OnGpu):
    """Rows of a GPU's memory that it exchanges for spare ones, or can exchange no more."""

    state: Remap = Remap.PENDING
    rows: int = 1
    key: ClassVar[str] = "row_remap"

    def __post_init__(self) -> None:
        OnGpu.__post_init__(self)
        object.__setattr__(self, "state", Remap(self.state))
        object.__setattr__(self, "rows", int(not_negative("rows", self.rows)))

    def bear(self, strain: Strain, *, on_s: float, is_reset: bool) -> None:
        del on_s
        if self.state is Remap.FAILED:
            strain.gauges["DCGM_FI_DEV_ROW_REMAP_FAILURE"] = 1
            strain.health["MEM"] = (20, "DCGM_FR_ROW_REMAP_FAILURE")
        elif self.state is Remap.PENDING and not is_reset:
            strain.gauges["DCGM_FI_DEV_ROW_REMAP_PENDING"] = 1
            strain.health["MEM"] = (10, "DCGM_FR_PENDING_ROW_REMAP")

    def at_start(self) -> dict[str, int]:
        kind = "CORRECTABLE" if self.state is Remap.CORRECTABLE else "UNCORRECTABLE"
        return {f"DCGM_FI_DEV_{kind}_REMAPPED_ROWS": self.rows}

    def xids(self, after_s: float, until_s: float) -> list[tuple[float, int]]:
        """The driver notes the event, 63, or that it failed, 64."""
        code = {Remap.PENDING: 63, Remap.FAILED: 64}.get(self.state)
        return [(0.0, code)] if code and after_s < 0 <= until_s else []
