"""A node is still cordoned although its labels, annotations and conditions show no reason any more.

Quarterdeck removes only its own cordons, so the GPUs stay unavailable until a person uncordons the node.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import NODE, NODES, NodeFacts, Severity, Wrong


@dataclass(frozen=True)
class CordonStale:
    key: ClassVar[str] = "cordon-stale"
    title: ClassVar[str] = "Stale cordon"
    subject: ClassVar[str] = NODE
    reads: ClassVar[tuple[str, ...]] = (NODES,)
    after: ClassVar[timedelta] = timedelta(minutes=30)  # whoever cordoned it has its rounds

    def evaluate(self, node: NodeFacts) -> Wrong | None:
        cordon = node.stale_cordon
        if cordon is None or node.is_changing:
            return None
        return Wrong(
            Severity.WARNING,
            f"{node.name} is cordoned by {cordon.by}, and {cordon.reason}.",
            f"Check whether anybody works on the node. If not: {cordon.command}",
            {"by": cordon.by, "command": cordon.command},
            why=f"{cordon.by} {cordon.reason}",
        )
