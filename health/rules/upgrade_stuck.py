"""A driver upgrade by the operator has lasted half an hour. The GPU stack's rows may give the cause."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from fleet.states.node import AT_REST
from health.rules.base import NODE, NODES, NodeFacts, Severity, Wrong


@dataclass(frozen=True)
class UpgradeStuck:
    key: ClassVar[str] = "upgrade-stuck"
    title: ClassVar[str] = "Driver upgrade stuck"
    subject: ClassVar[str] = NODE
    reads: ClassVar[tuple[str, ...]] = (NODES,)
    after: ClassVar[timedelta] = timedelta(minutes=30)

    def evaluate(self, node: NodeFacts) -> Wrong | None:
        if node.upgrade_state in AT_REST:  # a queue is its cluster's (`upgrade_queue_still`)
            return None
        return Wrong(
            Severity.WARNING,
            f"The driver upgrade of {node.name} has not ended: it is in {node.upgrade_state}.",
            node.upgrade_kept.helps or AT_WORK,
            {"state": node.upgrade_state},
            why=f"{node.upgrade_state} {node.upgrade_kept}",
            probable_cause=node.upgrade_kept.reason,
        )


AT_WORK = (
    "Look for what keeps it: jobs it waits for without a limit, a pod that nothing makes again or that has an "
    "emptyDir, a PodDisruptionBudget, a process that holds the GPU without asking for it, a validator that is absent, "
    "an image that is not there for this system."
)
