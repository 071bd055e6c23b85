"""No GPU of a changed node has new memory errors: uncorrectable ones, remapped rows, or many corrected ones."""

from dataclasses import dataclass
from typing import ClassVar

from health.rules.base import Severity
from health.rules.gpus.base import GpuRule
from health.rules.gpus.ecc_corrected import EccCorrected
from health.rules.gpus.ecc_uncorrected import EccUncorrected
from health.rules.gpus.row_remap import RowRemap
from rollouts.gates.findings import NewFindings


@dataclass(frozen=True)
class Ecc(NewFindings):
    severity: str = Severity.WARNING.value

    key: ClassVar[str] = "ecc"
    title: ClassVar[str] = "ECC errors"
    measured_by: ClassVar[GpuRule | None] = EccUncorrected()
    also: ClassVar[tuple[str, ...]] = (
        EccCorrected.key,
        RowRemap.key,
    )
