"""A kubelet, DRA driver, plugin or exporter reports a GPU as unhealthy, and its node offers as many as ever.

If fewer GPUs are allocatable for that reason, `allocatable-below-expected` reports it. The number stays the same for a
device that a pod holds, or that only a ResourceSlice attribute reports as unhealthy (KEP-4680).
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import NODE, NODES, NodeFacts, Problem, Severity
from health.rules.steps import DRAIN, NOTIFY, REPLACE, RESET, SAVE_LOGS, UNCORDON
from wording.numbers import count
from wording.reports import fit


@dataclass(frozen=True)
class DeviceUnhealthy:
    key: ClassVar[str] = "device-unhealthy"
    title: ClassVar[str] = "GPU reported unhealthy"
    subject: ClassVar[str] = NODE
    reads: ClassVar[tuple[str, ...]] = (NODES,)
    after: ClassVar[timedelta] = timedelta(minutes=1)
    steps: ClassVar[tuple[str, ...]] = (
        "Read the log of the reporter (Evidence): device plugin, DRA driver, kubelet or exporter.",
        "Read the kernel log of the node.",
        NOTIFY,
        SAVE_LOGS,
        DRAIN,
        RESET,
        REPLACE,
        UNCORDON,
    )

    def evaluate(self, node: NodeFacts) -> Problem | None:
        if not node.unhealthy or node.missing or node.is_changing:
            return None
        return Problem(
            severity=Severity.WARNING,
            title=fit("{} reported unhealthy on {}", count(len(node.unhealthy), "GPU"), node.name),
            summary="The node still offers as many GPUs as before.",
            evidence=node.unhealthy_evidence,
            identity=" ".join(node.unhealthy),
        )
