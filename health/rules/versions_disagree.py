"""Sources disagree on a node's driver version while nothing changes there, so one of them is wrong.

The requested version is not compared: a node that a plan has not reached yet rightly runs another.
"""

from dataclasses import dataclass
from datetime import timedelta
from itertools import combinations
from typing import ClassVar

from gpu.versions import agree_on_driver
from health.rules.base import NODE, NODES, PODS, NodeFacts, Problem, Severity
from health.rules.steps import DRAIN, UNCORDON
from wording.reports import EvidenceItem, fit


@dataclass(frozen=True)
class VersionsDisagree:
    key: ClassVar[str] = "versions-disagree"
    title: ClassVar[str] = "Driver versions disagree"
    subject: ClassVar[str] = NODE
    reads: ClassVar[tuple[str, ...]] = (NODES, PODS)
    after: ClassVar[timedelta] = timedelta(minutes=10)  # feature discovery refreshes the node's labels every minute
    steps: ClassVar[tuple[str, ...]] = (
        "Run nvidia-smi in the driver's pod of the node.",
        "If it shows the version of the pod's image, restart GPU feature discovery's pod on the node.",
        "Otherwise the old module is still loaded. Continue with the next steps.",
        DRAIN,
        "Restart the driver's pod, or reboot the node.",
        UNCORDON,
    )

    def evaluate(self, node: NodeFacts) -> Problem | None:
        if node.is_changing:
            return None
        versions = [version for _, version in node.drivers]
        if all(agree_on_driver(one, other) is not False for one, other in combinations(versions, 2)):
            return None
        return Problem(
            severity=Severity.WARNING,
            title=fit("Driver versions disagree on {}", node.name),
            summary="Sources report different driver versions, and no change is in progress.",
            evidence=tuple(EvidenceItem(f"{by[:1].upper()}{by[1:]}", version) for by, version in node.drivers),
            causes=("A label is outdated.", "The old kernel module is still loaded."),
            identity=" ".join(f"{by} {version}" for by, version in node.drivers),
        )
