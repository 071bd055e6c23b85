"""Sources disagree on a node's driver version while nothing changes there, so one of them is wrong.

The requested version is not compared: a node that a plan has not reached yet rightly runs another.
"""

from dataclasses import dataclass
from datetime import timedelta
from itertools import combinations
from typing import ClassVar

from gpu.versions import agree_on_driver
from health.rules.base import NODE, NODES, PODS, NodeFacts, Severity, Wrong


@dataclass(frozen=True)
class VersionsDisagree:
    key: ClassVar[str] = "versions-disagree"
    title: ClassVar[str] = "Driver versions disagree"
    subject: ClassVar[str] = NODE
    reads: ClassVar[tuple[str, ...]] = (NODES, PODS)
    after: ClassVar[timedelta] = timedelta(minutes=10)  # feature discovery labels a node anew every minute

    def evaluate(self, node: NodeFacts) -> Wrong | None:
        if node.is_changing:
            return None
        said = dict(node.drivers)
        if all(agree_on_driver(one, other) is not False for one, other in combinations(said.values(), 2)):
            return None
        return Wrong(
            Severity.WARNING,
            f"{node.name}: of its driver, {', '.join(f'{by} says {version}' for by, version in said.items())}.",
            "Look what nvidia-smi says in its driver pod. Where that is what the pod's image says, restart GPU feature "
            "discovery's pod; where it is the other, drain the node, then restart the driver's pod, or reboot.",
            said,
            probable_cause="A label is outdated, or the old module is still loaded.",
        )
