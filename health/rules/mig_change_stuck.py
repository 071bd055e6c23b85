"""The MIG manager began to reconfigure a node's GPUs and does not finish. The GPUs stay unavailable meanwhile."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from gpu.resources import Layout, missing_in_words
from health.rules.base import NODE, NODES, NodeFacts, Problem, Severity
from health.rules.steps import DRAIN, UNCORDON
from wording.reports import EvidenceItem, fit, instant


@dataclass(frozen=True)
class MigChangeStuck:
    key: ClassVar[str] = "mig-change-stuck"
    title: ClassVar[str] = "MIG change stuck"
    subject: ClassVar[str] = NODE
    reads: ClassVar[tuple[str, ...]] = (NODES,)
    after: ClassVar[timedelta] = timedelta(0)  # `mig_overdue_since` waited already
    steps: ClassVar[tuple[str, ...]] = (
        "Read the log of the MIG manager's pod on the node. Usually a process still uses a GPU.",
        DRAIN,
        "If the MIG manager gave up, set the label nvidia.com/mig.config to another value and back.",
        "Check the labels nvidia.com/gpu.deploy.*. Operands that the MIG manager paused must be true again.",
        UNCORDON,
    )

    def evaluate(self, node: NodeFacts) -> Problem | None:
        if node.mig_overdue_since is None:
            return None
        lost = missing_in_words(node.expected, node.allocatable, Layout.read(node.layout))
        # gpu-operator #2833: after a time-out it waits for a change of the label, which never comes.
        return Problem(
            severity=Severity.CRITICAL if lost else Severity.WARNING,
            title=fit("MIG change stuck on {}", node.name),
            summary="The MIG manager has not finished its change." + (" GPUs are missing meanwhile." if lost else ""),
            evidence=(
                EvidenceItem("Requested layout", node.mig_config or "none"),
                EvidenceItem("mig.config.state", node.mig_state),
                instant("Since", node.mig_overdue_since),
                *((EvidenceItem("Missing", lost),) if lost else ()),
            ),
            identity=f"{node.mig_config} {node.mig_state} {node.mig_overdue_since} {lost}",
        )
