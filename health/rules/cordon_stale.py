"""A node is still cordoned although its labels, annotations and conditions show no reason any more.

Quarterdeck removes only its own cordons, so the GPUs stay unavailable until a person uncordons the node.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import NODE, NODES, NodeFacts, Problem, Severity
from wording.reports import EvidenceItem, fit

FIRST = (
    "Find on the node's timeline who cordoned it. Ask whether work on the node is finished.",
    "Check the node's other findings. Whoever cordoned the node may not report a fault.",
)


@dataclass(frozen=True)
class CordonStale:
    key: ClassVar[str] = "cordon-stale"
    title: ClassVar[str] = "Stale cordon"
    subject: ClassVar[str] = NODE
    reads: ClassVar[tuple[str, ...]] = (NODES,)
    after: ClassVar[timedelta] = timedelta(minutes=30)  # gives the person who cordoned it time to act
    steps: ClassVar[tuple[str, ...]] = (*FIRST, "Remove the cordon and its marks by the command of the finding.")

    def evaluate(self, node: NodeFacts) -> Problem | None:
        cordon = node.stale_cordon
        if cordon is None or node.is_changing:
            return None
        return Problem(
            severity=Severity.WARNING,
            title=fit("Stale cordon on {}", node.name),
            summary="The node is cordoned, and the reason is gone. Its GPUs are unavailable.",
            evidence=(EvidenceItem("Cordoned by", cordon.by), EvidenceItem("Reason is gone", cordon.reason)),
            steps=(*FIRST, f"If nobody works on the node: {cordon.command}"),
            identity=f"{cordon.by} {cordon.reason}",
        )
