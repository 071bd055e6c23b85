"""The daemon of a ComputeDomain is not ready on a node. Pods that need NVLink between nodes wait there."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import NODE, NODES, PODS, NodeFacts, Severity, Wrong


@dataclass(frozen=True)
class ComputeDomainDown:
    key: ClassVar[str] = "compute-domain-down"
    title: ClassVar[str] = "ComputeDomain not ready"
    subject: ClassVar[str] = NODE
    reads: ClassVar[tuple[str, ...]] = (NODES, PODS)
    after: ClassVar[timedelta] = timedelta(minutes=2)  # its daemon has had five before it is read

    def evaluate(self, node: NodeFacts) -> Wrong | None:
        daemon = node.domain_daemon
        if daemon is None or node.is_changing or node.is_unreported:
            return None
        return Wrong(
            Severity.WARNING,
            f"On {node.name} the daemon of a ComputeDomain ({daemon.name}) is not ready: pods that need IMEX wait.",
            daemon.action or "See the GPU stack on the node's page. The daemon's log names the missing part of IMEX.",
            {"pod": daemon.name, "said": daemon.message},
            probable_cause=daemon.reason,
        )
