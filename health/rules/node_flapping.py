"""A node is repeatedly not ready, each time too briefly for a finding, but long enough to lose its pods."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import NODE, NODES, NodeFacts, Problem
from health.rules.limits import Limits, Scale, beyond
from health.rules.steps import CORDON, UNCORDON
from wording.reports import EvidenceItem, fit

WITHIN = timedelta(minutes=30)
ITS_OWN = Limits(3, None)  # our choice: a boot and a kubelet restart after it may cause two


@dataclass(frozen=True)
class NodeFlapping:
    key: ClassVar[str] = "node-flapping"
    title: ClassVar[str] = "Node flaps"
    subject: ClassVar[str] = NODE
    reads: ClassVar[tuple[str, ...]] = (NODES,)
    scale: ClassVar[Scale] = Scale("times within half an hour", 2, 100)
    steps: ClassVar[tuple[str, ...]] = (
        CORDON,
        "Read the kubelet's log. Check memory and disk of the node.",
        "Check the network between the node and the API server.",
        UNCORDON,
    )
    limits: Limits = ITS_OWN

    @property
    def after(self) -> timedelta:
        return self.limits.warn_after

    def evaluate(self, node: NodeFacts) -> Problem | None:
        if node.falls < self.limits.warn:
            return None
        return beyond(
            self,
            node.falls,
            title=fit("{} is repeatedly not ready", node.name),
            summary="Jobs with a pod on the node may hang.",
            evidence=(EvidenceItem("Not ready", node.falls, self.scale.unit),),
            facts={"falls": node.falls},
        )
