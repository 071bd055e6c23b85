"""Pods on a node crash or cannot start: GPU pods of tenants, or pods of the GPU stack."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import NODE, NODES, PODS, FailingPod, NodeFacts, Severity, Wrong
from wording.numbers import count, either

NAMED = 2
REFUSED = (
    "The kubelet refused it, because the GPUs were not there to be given: look at the device plugin on this node, and "
    "restart its pod where the node offers fewer GPUs than it has."
)
SHUT_DOWN = "The node was shut down under it: look why. A pod without an owner has to be made again."
# What a kubelet says of a pod that it refuses or ends, and what helps (kubernetes/kubernetes:
# pkg/kubelet/lifecycle/predicate.go, eviction/eviction_manager.go, nodeshutdown, preemption, cm/topologymanager).
BY_KUBELET = {
    "UnexpectedAdmissionError": REFUSED,
    **{f"OutOf{vendor}": REFUSED for vendor in ("nvidia.com/", "amd.com/", "habana.ai/", "gpu.intel.com/")},
    "OutOf": "The node had no room left when it came: look who places pods there beside the scheduler.",
    "TopologyAffinityError": "No NUMA node had all that it asks for: look at the kubelet's topology manager policy.",
    "Evicted": "The node was short of memory, disk or PIDs: `kubectl describe node` says of which.",
    "Terminated": SHUT_DOWN,
    "NodeShutdown": SHUT_DOWN,
    "Shutdown": SHUT_DOWN,
    "Preempting": "A critical pod took its place: it has to find another node.",
    "NodeAffinity": "The node's labels no longer fit it: look who changed them.",
}
OWNED_FOR = timedelta(hours=1)  # its owner has made another: what its node did to it is news for a while
BARE_FOR = timedelta(days=1)  # nobody makes it again
ITS_OWN = "Nothing creates it again. Read its log (`kubectl logs`), then delete it."


@dataclass(frozen=True)
class PodsFailing:
    key: ClassVar[str] = "pods-failing"
    title: ClassVar[str] = "Pods fail"
    subject: ClassVar[str] = NODE
    reads: ClassVar[tuple[str, ...]] = (NODES, PODS)
    after: ClassVar[timedelta] = timedelta(minutes=1)  # one crash while a driver restarts is over in seconds

    def evaluate(self, node: NodeFacts) -> Wrong | None:
        pods = sorted(node.failing_pods, key=lambda pod: (pod.is_over, not pod.operand, pod.name))
        if not pods:
            return None
        number = count(len(pods), "pod")
        does = "failed" if all(pod.is_over for pod in pods) else either(len(pods), "fails", "fail")
        more = len(pods) - NAMED
        named = "; ".join(_said(pod) for pod in pods[:NAMED])
        return Wrong(
            Severity.WARNING,
            f"{node.name}: {number} {does}, {named}{f'; and {more} more' if more > 0 else ''}.",
            _action(pods),
            {pod.name: _evidence(pod) for pod in pods[:20]},
            probable_cause=next((pod.reason for pod in pods if pod.reason), ""),
        )


def _evidence(pod: FailingPod) -> dict[str, str | int]:
    said = {"said": pod.message} if pod.message else {}
    return {"status": pod.status, "restarts": pod.restarts, **said}


def _said(pod: FailingPod) -> str:
    return f"{pod.name} ({pod.status})"


def _action(pods: list[FailingPod]) -> str:
    if (known := next((pod for pod in pods if pod.reason), None)) and known.action:
        return f"{known.name}: {known.action}" if len(pods) > 1 else known.action
    if all(pod.is_over for pod in pods):
        return next((action for reason, action in BY_KUBELET.items() if pods[0].status.startswith(reason)), ITS_OWN)
    if any(pod.operand for pod in pods):
        return "See the GPU stack on the node's page for the cause and the recommended action."
    if any("Image" in pod.status for pod in pods):
        return "Describe the pod: its events name the image and what the registry says."
    return (
        "Read the last log of its container (`kubectl logs --previous`). Where pods of one workload fail on this node "
        "alone, look at the node's driver and GPUs; where they fail everywhere, at the workload."
    )


def failed_of(reason: str) -> str:
    """Returns the pod's own failure reason; empty if it has none and its containers ended by themselves."""
    return reason.partition(":")[0]


def deserves_finding(owner_kind: str, reason: str, ago: timedelta) -> bool:
    """Returns whether a pod that failed for good deserves a finding.

    Failures of its own containers concern its owner: a Job tries again, a Workflow takes another branch. A pod without
    an owner is reported, and so is every pod that the kubelet failed.
    """
    if not owner_kind:
        return ago <= BARE_FOR
    return reason.startswith(tuple(BY_KUBELET)) and ago <= OWNED_FOR
