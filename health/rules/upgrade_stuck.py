"""A driver upgrade by the operator has lasted half an hour. The GPU stack's rows may give the cause."""

from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import ClassVar

from fleet.states.node import AT_REST
from health.rules.base import NODE, NODES, NodeFacts, Problem, Severity
from health.rules.steps import GPU_STACK
from wording.reports import EvidenceItem, fit


@dataclass(frozen=True)
class UpgradeStuck:
    key: ClassVar[str] = "upgrade-stuck"
    title: ClassVar[str] = "Driver upgrade stuck"
    subject: ClassVar[str] = NODE
    reads: ClassVar[tuple[str, ...]] = (NODES,)
    after: ClassVar[timedelta] = timedelta(minutes=30)
    steps: ClassVar[tuple[str, ...]] = (
        GPU_STACK,
        "Check pods that the operator waits for or cannot evict: jobs, pods without a controller or with an emptyDir.",
        "Check PodDisruptionBudgets that allow no eviction.",
        "Check for a process that uses the GPU without a request.",
        "Check the driver's pod: its image may be missing for this system, or a module may be in use.",
        "If several nodes are stuck like this, halt the plan.",
    )

    def evaluate(self, node: NodeFacts) -> Problem | None:
        if node.upgrade_state in AT_REST:  # a queue is its cluster's (`upgrade_queue_still`)
            return None
        blocker = node.upgrade_blocker
        return Problem(
            severity=Severity.WARNING,
            title=fit("Driver upgrade of {} is stuck", node.name),
            summary=f"Its upgrade state is {node.upgrade_state}.",
            evidence=(EvidenceItem("Upgrade state", node.upgrade_state),),
            causes=blocker.causes,
            steps=(*blocker.steps, self.steps[-1]) if blocker.steps else (),
            facts={"state": node.upgrade_state, "blocker": asdict(blocker)},
            identity=" ".join((node.upgrade_state, *blocker.causes, *blocker.steps)),
        )
