"""No GPU of a changed node has had a new Xid since its driver was loaded. Xids of applications do not count."""

from dataclasses import dataclass
from typing import ClassVar

from health.rules.base import Severity
from health.rules.gpus.base import GpuRule
from health.rules.gpus.recovery_action import RecoveryActionNeeded
from health.rules.gpus.xid import LastXid
from health.rules.xid_of_unknown_gpu import XidOfUnknownGpu
from rollouts.gates.findings import NewFindings


@dataclass(frozen=True)
class Xid(NewFindings):
    severity: str = Severity.WARNING.value

    key: ClassVar[str] = "xid"
    title: ClassVar[str] = "Xids"
    measured_by: ClassVar[GpuRule | None] = LastXid()
    also: ClassVar[tuple[str, ...]] = (RecoveryActionNeeded.key, XidOfUnknownGpu.key)
