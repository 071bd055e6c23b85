"""A node stops being ready again and again, each time too briefly to be told of, and its pods are lost all the same."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import NODE, NODES, NodeFacts, Severity, Wrong

WITHIN = timedelta(minutes=30)
FALLS = 3  # ours: two may be a boot, and a kubelet that is started anew after it


@dataclass(frozen=True)
class NodeFlapping:
    key: ClassVar[str] = "node-flapping"
    title: ClassVar[str] = "Node comes and goes"
    subject: ClassVar[str] = NODE
    reads: ClassVar[tuple[str, ...]] = (NODES,)
    after: ClassVar[timedelta] = timedelta(0)  # its falls took their time

    def judge(self, node: NodeFacts) -> Wrong | None:
        if node.falls < FALLS:
            return None
        return Wrong(
            Severity.WARNING,
            f"{node.name} stops being ready again and again: {FALLS} times or more within half an hour.",
            "Look at its kubelet's log, at its memory and disk, and at the network between it and the API server. Jobs "
            "with a pod there may hang; cordon it until it stays.",
            {"falls": node.falls},
            why="flapping",
        )
