"""A GPU is called unhealthy, and its node offers as many as ever: by its kubelet, DRA driver, plugin or exporter.

Where fewer GPUs can be allocated for that, `allocatable-below-expected` names it. A device that a pod holds, or that
only an attribute of its ResourceSlice calls unhealthy, takes nothing off that number (KEP-4680).
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import NODE, NODES, NodeFacts, Severity, Wrong


@dataclass(frozen=True)
class DeviceUnhealthy:
    key: ClassVar[str] = "device-unhealthy"
    title: ClassVar[str] = "GPU called unhealthy"
    subject: ClassVar[str] = NODE
    reads: ClassVar[tuple[str, ...]] = (NODES,)
    after: ClassVar[timedelta] = timedelta(minutes=1)

    def judge(self, node: NodeFacts) -> Wrong | None:
        if not node.unhealthy or node.missing or node.is_changing:
            return None
        return Wrong(
            Severity.WARNING,
            f"{node.name}: {node.unhealthy}",
            "Read the log of whoever says so on the node (device plugin, DRA driver, exporter), then the kernel log. "
            "Drain the node and reset the GPU, or reboot, where it is right.",
            {"unhealthy": node.unhealthy},
            why=node.unhealthy,
        )
