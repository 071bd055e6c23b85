"""A node is not ready, or its kubelet stopped reporting. No pod starts there, and running pods may be lost."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import NODE, NODES, NodeFacts, Severity, Wrong
from wording.instants import to_the_minute

RUNTIME = ("container runtime", "containerd", "crio", "cri-o", "docker")


@dataclass(frozen=True)
class NodeNotReady:
    key: ClassVar[str] = "node-not-ready"
    title: ClassVar[str] = "Node not ready"
    subject: ClassVar[str] = NODE
    reads: ClassVar[tuple[str, ...]] = (NODES,)
    after: ClassVar[timedelta] = timedelta(minutes=1)

    def evaluate(self, node: NodeFacts) -> Wrong | None:
        if node.is_ready is not False and not node.is_unreported:
            return None
        reason = f": {node.not_ready_reason.rstrip('. ')}" if node.not_ready_reason else ""
        if node.is_unreported:
            return Wrong(
                Severity.CRITICAL,
                f"The kubelet of {node.name} stopped reporting{reason}.",
                "Look whether the machine answers (its console, its BMC). Its pods are evicted after five minutes, "
                "unless they tolerate that; a job with a pod there hangs.",
                why="unreported",
            )
        is_runtime = any(word in node.not_ready_reason.lower() for word in RUNTIME)
        return Wrong(
            Severity.CRITICAL,
            f"{node.name} is not ready{reason}.",
            "Restart the runtime, then the kubelet." if is_runtime else "Look at the kubelet's log and at the machine.",
            why=f"not ready {node.not_ready_reason}",
            probable_cause=_race(node) if is_runtime else "",
        )


def _race(node: NodeFacts) -> str:
    boot = f"it booted at {to_the_minute(node.booted_at)}, and" if node.booted_at else "after a boot"
    return (
        f"Its container runtime does not answer the kubelet: {boot} the two may have started in the wrong order, or "
        "with a configuration that the toolkit was still writing."
    )
