"""A driver upgrade removed the cordon of a node that somebody had cordoned.

NVIDIA's upgrade controller notes that a node was cordoned before and leaves it cordoned. At its end, k8s-driver-manager
uncordons the node whoever cordoned it (k8s-driver-manager #212). The API does not report who did: it may have been a
person.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import NODE, NODES, NodeFacts, Problem, Severity
from wording.reports import EvidenceItem, fit, instant


@dataclass(frozen=True)
class CordonRemoved:
    key: ClassVar[str] = "cordon-removed"
    title: ClassVar[str] = "Cordon removed"
    subject: ClassVar[str] = NODE
    reads: ClassVar[tuple[str, ...]] = (NODES,)
    after: ClassVar[timedelta] = timedelta(0)  # new pods come at once
    steps: ClassVar[tuple[str, ...]] = (
        "Find out why the node was cordoned. Its timeline may show who did it.",
        "If the reason persists, quarantine the node again in Quarterdeck. By hand: kubectl cordon NODE",
        "Check the pods that started since, and notify their owners.",
        "If a person uncordoned the node, dismiss this finding.",
    )

    def evaluate(self, node: NodeFacts) -> Problem | None:
        since = node.uncordoned_since
        if since is None or node.is_unschedulable:
            return None
        return Problem(
            severity=Severity.WARNING,
            title=fit("A driver upgrade removed the cordon of {}", node.name),
            summary="The node was cordoned before its driver upgrade. It accepts pods again.",
            evidence=(
                instant("Uncordoned since", since),
                EvidenceItem("Upgrade state", node.upgrade_state or "none"),
            ),
            causes=("The driver manager removes every cordon, whoever set it.",),
            identity="removed",
        )
