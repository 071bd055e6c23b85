"""No GPU of a changed node is newly slowed down by heat, its power brake or its voltage."""

from dataclasses import dataclass
from typing import ClassVar

from health.rules.base import Severity
from health.rules.gpus.base import GpuRule
from health.rules.gpus.throttled import Throttled
from rollouts.gates.findings import NewFindings


@dataclass(frozen=True)
class Throttling(NewFindings):
    severity: str = Severity.WARNING.value

    key: ClassVar[str] = "throttling"
    title: ClassVar[str] = "Throttling"
    measured_by: ClassVar[GpuRule | None] = Throttled()
