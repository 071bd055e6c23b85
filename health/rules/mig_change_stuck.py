"""The MIG manager began to reconfigure a node's GPUs and does not finish. The GPUs stay unavailable meanwhile."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from gpu.resources import Layout, missing_in_words
from health.rules.base import NODE, NODES, NodeFacts, Severity, Wrong
from wording.instants import to_the_minute


@dataclass(frozen=True)
class MigChangeStuck:
    key: ClassVar[str] = "mig-change-stuck"
    title: ClassVar[str] = "MIG change stuck"
    subject: ClassVar[str] = NODE
    reads: ClassVar[tuple[str, ...]] = (NODES,)
    after: ClassVar[timedelta] = timedelta(0)  # `mig_overdue_since` waited already

    def evaluate(self, node: NodeFacts) -> Wrong | None:
        if node.mig_overdue_since is None:
            return None
        lost = missing_in_words(node.expected, node.allocatable, Layout.read(node.layout))
        return Wrong(
            Severity.CRITICAL if lost else Severity.WARNING,
            f"{node.name}: the MIG manager has been changing its layout to {node.mig_config or '(none named)'} since "
            f"{to_the_minute(node.mig_overdue_since)}; mig.config.state is still {node.mig_state}."
            + (f" Meanwhile it lacks {lost}." if lost else ""),
            # gpu-operator #2833: after a time-out it waits for a change of the label, which never comes.
            "Read the MIG manager's log on this node. Where it gave up, set the label nvidia.com/mig.config to another "
            "value and back; what it paused, the nvidia.com/gpu.deploy labels name.",
            {"config": node.mig_config, "state": node.mig_state, "expected": dict(node.expected)},
        )
