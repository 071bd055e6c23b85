"""No GPU of a changed node has become too hot."""

from dataclasses import dataclass
from typing import ClassVar

from health.rules.base import Severity
from health.rules.gpus.base import GpuRule
from health.rules.gpus.hot import Hot
from rollouts.gates.findings import NewFindings


@dataclass(frozen=True)
class Thermal(NewFindings):
    severity: str = Severity.WARNING.value

    key: ClassVar[str] = "thermal"
    title: ClassVar[str] = "Temperature"
    measured_by: ClassVar[GpuRule | None] = Hot()
