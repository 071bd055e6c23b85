"""A node is not ready, or its kubelet stopped reporting. No pod starts there, and running pods may be lost."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import NODE, NODES, NodeFacts, Problem, Severity
from health.rules.steps import NOTIFY
from wording.instants import to_the_minute
from wording.reports import EvidenceItem, fit

RUNTIME = ("container runtime", "containerd", "crio", "cri-o", "docker")


@dataclass(frozen=True)
class NodeNotReady:
    key: ClassVar[str] = "node-not-ready"
    title: ClassVar[str] = "Node not ready"
    subject: ClassVar[str] = NODE
    reads: ClassVar[tuple[str, ...]] = (NODES,)
    after: ClassVar[timedelta] = timedelta(minutes=1)
    steps: ClassVar[tuple[str, ...]] = (
        NOTIFY,
        "Check whether the machine answers: its console, its BMC.",
        "Read the reason: kubectl describe node NODE, then journalctl -u kubelet on the node.",
        "If the container runtime does not answer, restart it. Then restart the kubelet.",
        "If the node stays not ready, reboot it or take it out of service.",
    )

    def evaluate(self, node: NodeFacts) -> Problem | None:
        if node.is_ready is not False and not node.is_unreported:
            return None
        evidence = (EvidenceItem("Reason", node.not_ready_reason),) if node.not_ready_reason else ()
        if node.is_unreported:
            return Problem(
                severity=Severity.CRITICAL,
                title=fit("Kubelet of {} stopped reporting", node.name),
                summary="Most pods are evicted after five minutes. Jobs with a pod on the node hang.",
                evidence=evidence,
                identity="unreported",
            )
        is_runtime = any(word in node.not_ready_reason.lower() for word in RUNTIME)
        return Problem(
            severity=Severity.CRITICAL,
            title=fit("Node {} is not ready", node.name),
            summary="The container runtime does not answer the kubelet." if is_runtime else "New pods do not start.",
            evidence=evidence,
            causes=_boot_race_causes(node) if is_runtime else (),
            steps=(NOTIFY, "Restart the container runtime, then the kubelet.", self.steps[4]) if is_runtime else (),
            identity=f"not ready {node.not_ready_reason}",
        )


def _boot_race_causes(node: NodeFacts) -> tuple[str, ...]:
    booted = f" The node booted at {to_the_minute(node.booted_at)}." if node.booted_at else ""
    return (
        f"After a boot, the runtime and the kubelet may have started in the wrong order.{booted}",
        "The runtime started with a configuration that the toolkit was still writing.",
    )
