"""A driver upgrade of the operator's goes on for half an hour, and why, where the GPU stack's rows say it (n 6)."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from gpu.upgrade_controller import UPGRADE_DONE, UPGRADE_FAILED, UPGRADE_REQUIRED
from health.rules.base import NODE, NODES, NodeFacts, Severity, Wrong

AT_REST = frozenset({"", UPGRADE_DONE, UPGRADE_FAILED})


@dataclass(frozen=True)
class UpgradeStuck:
    key: ClassVar[str] = "upgrade-stuck"
    title: ClassVar[str] = "Driver upgrade stuck"
    subject: ClassVar[str] = NODE
    reads: ClassVar[tuple[str, ...]] = (NODES,)
    after: ClassVar[timedelta] = timedelta(minutes=30)

    def judge(self, node: NodeFacts) -> Wrong | None:
        is_queued = node.upgrade_state == UPGRADE_REQUIRED
        if node.upgrade_state in AT_REST or (is_queued and node.is_held):
            return None
        return Wrong(
            Severity.WARNING,
            f"{node.name} has waited for its driver upgrade for half an hour and more."
            if is_queued
            else f"The driver upgrade of {node.name} goes on for half an hour and more: it is in {node.upgrade_state}.",
            node.upgrade_because or (QUEUED if is_queued else AT_WORK),
            {"state": node.upgrade_state},
            why=f"{'queued' if is_queued else 'at work'} {node.upgrade_because}",
        )


QUEUED = (
    "The operator's slots are taken: by a node that failed, is cordoned or is not ready, or by a DaemonSet with a pod "
    "that fits nowhere, which stops them all. Look for upgrade-failed and for driver pods that are Pending."
)
AT_WORK = (
    "Look for what keeps it: jobs it waits for without a limit, a pod that nothing makes again or that has an "
    "emptyDir, a PodDisruptionBudget, a process that holds the GPU without asking for it, a validator that is absent, "
    "an image that is not there for this system."
)
