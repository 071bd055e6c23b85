"""A node is repeatedly not ready, each time too briefly for a finding, but long enough to lose its pods."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import NODE, NODES, NodeFacts, Wrong
from health.rules.limits import Limits, Scale, beyond

WITHIN = timedelta(minutes=30)
ITS_OWN = Limits(3, None)  # ours: two may be a boot, and a kubelet that is started anew after it; they took their time


@dataclass(frozen=True)
class NodeFlapping:
    key: ClassVar[str] = "node-flapping"
    title: ClassVar[str] = "Node flaps"
    subject: ClassVar[str] = NODE
    reads: ClassVar[tuple[str, ...]] = (NODES,)
    scale: ClassVar[Scale] = Scale("times within half an hour", 2, 100)
    limits: Limits = ITS_OWN

    @property
    def after(self) -> timedelta:
        return self.limits.warn_after

    def evaluate(self, node: NodeFacts) -> Wrong | None:
        if node.falls < self.limits.warn:
            return None
        return beyond(
            self.limits,
            "falls",
            node.falls,
            lambda limit: f"{node.name} is repeatedly not ready, {limit:g} times or more within half an hour",
            "Check its kubelet's log, its memory and disk, and the network between it and the API "
            "server. Jobs with a pod there may hang. Cordon it until it is stable.",
        )
