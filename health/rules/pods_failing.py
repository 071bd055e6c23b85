"""Pods on a node crash or cannot start: GPU pods of tenants, or pods of the GPU stack."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import NODE, NODES, PODS, FailingPod, NodeFacts, Problem, Severity
from health.rules.steps import GPU_STACK
from wording.numbers import count, either
from wording.reports import LONGEST_SUMMARY, EvidenceItem, first_items, fit

NAMED = 2
REFUSED = (
    "The kubelet refused the pod because no GPU was free. Check the device plugin on the node.",
    "If the node offers fewer GPUs than it has, restart the device plugin's pod.",
)
SHUT_DOWN = ("Find out why the node was shut down.", "Create a pod without an owner again.")
# Reasons of a kubelet for a pod that it rejects or ends, with remedies (kubernetes/kubernetes:
# pkg/kubelet/lifecycle/predicate.go, eviction/eviction_manager.go, nodeshutdown, preemption, cm/topologymanager).
BY_KUBELET: Mapping[str, tuple[str, ...]] = {
    "UnexpectedAdmissionError": REFUSED,
    **{f"OutOf{vendor}": REFUSED for vendor in ("nvidia.com/", "amd.com/", "habana.ai/", "gpu.intel.com/")},
    "OutOf": (
        "The node had no room left for the pod. Check what else, beside the scheduler, assigns pods to the node.",
    ),
    "TopologyAffinityError": ("No NUMA node had room for all requests. Check the kubelet's topology manager policy.",),
    "Evicted": ("The node was short of memory, disk or PIDs: `kubectl describe node` shows which.",),
    "Terminated": SHUT_DOWN,
    "NodeShutdown": SHUT_DOWN,
    "Shutdown": SHUT_DOWN,
    "Preempting": ("A critical pod took its place. The pod needs another node.",),
    "NodeAffinity": ("The node's labels no longer match the pod. Find out who changed them.",),
}
BARE = ("Read its log: kubectl logs POD", "Delete the pod. Nothing creates it again.")
OWNED_FOR = timedelta(hours=1)  # after its owner made a new pod, the failure counts for the node this long
BARE_FOR = timedelta(days=1)  # no controller creates it again


@dataclass(frozen=True)
class PodsFailing:
    key: ClassVar[str] = "pods-failing"
    title: ClassVar[str] = "Pods fail"
    subject: ClassVar[str] = NODE
    reads: ClassVar[tuple[str, ...]] = (NODES, PODS)
    after: ClassVar[timedelta] = timedelta(minutes=1)  # one crash while a driver restarts is over in seconds
    steps: ClassVar[tuple[str, ...]] = (
        "Open the node's page for the cause and its log line, or run kubectl describe pod POD.",
        "Read the container's last log: kubectl logs POD --previous. A container that ends with StartError has none.",
        "If an image is missing, the pod's events show the registry's answer.",
        "If pods of one workload fail only on this node, check its driver and GPUs. Otherwise check the workload.",
    )

    def evaluate(self, node: NodeFacts) -> Problem | None:
        pods = sorted(node.failing_pods, key=lambda pod: (pod.is_over, not pod.operand, pod.name))
        if not pods:
            return None
        does = "failed" if all(pod.is_over for pod in pods) else either(len(pods), "fails", "fail")
        known = next((pod for pod in pods if pod.steps), None)
        first = known or next((pod for pod in pods if pod.trouble), pods[0])
        others = [pod for pod in pods if pod is not first and not first.trouble]
        steps = self._steps_for(pods, known)
        named = " ".join(f"{pod.name} {pod.status}" for pod in pods[:NAMED])
        return Problem(
            severity=Severity.WARNING,
            title=fit("{} {} on {}", count(len(pods), "pod"), does, node.name),
            summary=fit("{}", "; ".join(pod.summary for pod in (first, *others)[:NAMED]), longest=LONGEST_SUMMARY),
            evidence=first_items(item for pod in pods for item in _evidence(pod)),
            causes=known.causes if known else (),
            steps=steps,
            identity=" ".join((f"{len(pods)} {named}", *(known.causes if known else ()), *steps)),
        )

    def _steps_for(self, pods: list[FailingPod], known: FailingPod | None) -> tuple[str, ...]:
        if known and known.steps:
            return (f"Pod {known.name}: {known.steps[0]}", *known.steps[1:]) if len(pods) > 1 else known.steps
        if all(pod.is_over for pod in pods):
            return next((steps for reason, steps in BY_KUBELET.items() if pods[0].status.startswith(reason)), BARE)
        if any(pod.operand for pod in pods):
            return (GPU_STACK,)
        if any("Image" in pod.status for pod in pods):
            return ("Describe the pod. Its events name the image and the registry's answer.",)
        return self.steps[1::2]


def _evidence(pod: FailingPod) -> Iterator[EvidenceItem]:
    yield pod.evidence
    if pod.restarts:
        yield EvidenceItem(f"Restarts of {pod.name}", pod.restarts)


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
