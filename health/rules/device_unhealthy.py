"""A kubelet, DRA driver, plugin or exporter reports a GPU as unhealthy, and its node offers as many as ever.

If fewer GPUs are allocatable for that reason, `allocatable-below-expected` reports it. The number stays the same for a
device that a pod holds, or that only a ResourceSlice attribute reports as unhealthy (KEP-4680).
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import NODE, NODES, NodeFacts, Severity, Wrong


@dataclass(frozen=True)
class DeviceUnhealthy:
    key: ClassVar[str] = "device-unhealthy"
    title: ClassVar[str] = "GPU reported unhealthy"
    subject: ClassVar[str] = NODE
    reads: ClassVar[tuple[str, ...]] = (NODES,)
    after: ClassVar[timedelta] = timedelta(minutes=1)

    def evaluate(self, node: NodeFacts) -> Wrong | None:
        if not node.unhealthy or node.missing or node.is_changing:
            return None
        return Wrong(
            Severity.WARNING,
            f"{node.name}: {node.unhealthy}",
            "Read the log of the reporter on the node (device plugin, DRA driver, exporter), then "
            "the kernel log. If the report is right, drain the node and reset the GPU, or reboot.",
            {"unhealthy": node.unhealthy},
            why=node.unhealthy,
        )
