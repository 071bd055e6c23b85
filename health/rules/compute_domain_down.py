"""The daemon of a ComputeDomain is not ready on a node. Pods that need NVLink between nodes wait there."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import NODE, NODES, PODS, NodeFacts, Problem, Severity
from health.rules.steps import GPU_STACK
from wording.reports import fit


@dataclass(frozen=True)
class ComputeDomainDown:
    key: ClassVar[str] = "compute-domain-down"
    title: ClassVar[str] = "ComputeDomain not ready"
    subject: ClassVar[str] = NODE
    reads: ClassVar[tuple[str, ...]] = (NODES, PODS)
    # the rule reads daemons that were not ready for five minutes already
    after: ClassVar[timedelta] = timedelta(minutes=2)
    steps: ClassVar[tuple[str, ...]] = (
        GPU_STACK,
        "Read the daemon's log for the missing part of IMEX.",
        "If an IMEX session is in use, run systemctl disable --now nvidia-imex, then delete the daemon's pod.",
        "Compare driver versions on all nodes of the domain. Check that port 50000 is open between the nodes.",
    )

    def evaluate(self, node: NodeFacts) -> Problem | None:
        daemon = node.domain_daemon
        if daemon is None or node.is_changing or node.is_unreported:
            return None
        return Problem(
            severity=Severity.WARNING,
            title=fit("ComputeDomain daemon is not ready on {}", node.name),
            summary=daemon.summary if daemon.trouble else "Pods that need IMEX wait on this node.",
            evidence=(daemon.evidence,),
            causes=daemon.causes,
            steps=daemon.steps,
            identity=" ".join((daemon.name, *daemon.causes, *daemon.steps)),
        )
