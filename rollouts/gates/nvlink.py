"""No GPU of a changed node has new errors on its NVLinks, a silent NVLink or a fault of the fabric."""

from dataclasses import dataclass
from typing import ClassVar

from health.rules.base import Severity
from health.rules.gpus.base import GpuRule
from health.rules.gpus.fabric import Fabric
from health.rules.gpus.nvlink_errors import NvlinkErrors
from health.rules.gpus.nvlink_quiet import NvlinkQuiet
from rollouts.gates.findings import NewFindings


@dataclass(frozen=True)
class Nvlink(NewFindings):
    severity: str = Severity.WARNING.value

    key: ClassVar[str] = "nvlink"
    title: ClassVar[str] = "NVLink"
    measured_by: ClassVar[GpuRule | None] = NvlinkErrors()
    also: ClassVar[tuple[str, ...]] = (
        NvlinkQuiet.key,
        Fabric.key,
    )
