"""A driver upgrade removed the cordon of a node that somebody had cordoned.

NVIDIA's upgrade controller notes that a node was cordoned before and leaves it cordoned. At its end, k8s-driver-manager
uncordons the node whoever cordoned it (k8s-driver-manager #212). The API does not report who did: it may have been a
person.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import NODE, NODES, NodeFacts, Severity, Wrong
from wording.instants import to_the_minute


@dataclass(frozen=True)
class CordonRemoved:
    key: ClassVar[str] = "cordon-removed"
    title: ClassVar[str] = "Cordon removed"
    subject: ClassVar[str] = NODE
    reads: ClassVar[tuple[str, ...]] = (NODES,)
    after: ClassVar[timedelta] = timedelta(0)  # new pods come at once

    def evaluate(self, node: NodeFacts) -> Wrong | None:
        since = node.uncordoned_since
        if since is None or node.is_unschedulable:
            return None
        return Wrong(
            Severity.WARNING,
            f"{node.name} was cordoned before its driver upgrade, and has taken pods again since "
            f"{to_the_minute(since)}. The upgrade should have left it cordoned.",
            "Find out why the node was cordoned. If the reason persists, cordon it again (kubectl "
            "cordon) and check the pods that started since. If a person uncordoned it, dismiss this "
            "finding.",
            {"uncordoned_since": since.isoformat(), "upgrade_state": node.upgrade_state},
            why="removed",
            probable_cause="The driver manager removes every cordon, whoever set it.",
        )
