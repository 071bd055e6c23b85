"""The Job that works on the GPUs of one changed node. Pure.

It asks for GPUs as a tenant's pod does, so that device plugin, runtime and driver are used as theirs are, and has no
token, no rights and no mounts. It comes to a cordoned node, and to one with taints that keep pods without business
there away (NoSchedule), but to none from which pods are sent away (NoExecute). Of a container that failed the kubelet
keeps the last of its log as its message (FallbackToLogsOnError: kubernetes.io/docs/tasks/debug/debug-application/
determine-reason-pod-failure), so that nobody has to read logs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from gpu.labels import ASKED_AT, GPU, MANAGED_BY, OURS, PROOF, PROVES_FOR
from gpu.resources import is_gpu_resource

CONTAINER = "proof"
DEADLINE = timedelta(minutes=15)  # an image of some hundred MB is pulled, and a sample runs for seconds
KEPT_FOR = timedelta(minutes=10)  # after its end, where nobody is left to delete it
LITTLE = {"cpu": "100m", "memory": "256Mi"}
MOST = {"cpu": "2", "memory": "2Gi"}  # of a quota that wants limits
EVERY_SUCH_TAINT = {"operator": "Exists", "effect": "NoSchedule"}  # node.kubernetes.io/unschedulable among them


@dataclass(frozen=True)
class WantedProof:
    """One test Job on one node, as a row says it."""

    plan: str  # "plan-7"
    proof: int
    node: str
    image: str
    resource: str  # nvidia.com/gpu, nvidia.com/mig-1g.10gb, …
    amount: int
    asked_at: str

    @property
    def name(self) -> str:
        return f"quarterdeck-proof-{self.proof}"

    @property
    def labels(self) -> dict[str, str]:
        return {MANAGED_BY: OURS, PROVES_FOR: self.plan, PROOF: str(self.proof)}


def pods_for(plan: str) -> str:
    """The label selector of every pod that proves for it."""
    return f"{MANAGED_BY}={OURS},{PROVES_FOR}={plan}"


def is_ours(wanted: WantedProof, labels: Mapping[str, str], annotations: Mapping[str, str]) -> bool:
    """Whether a Job, or a pod, is of the row that this is of, and of no one of a database that was restored."""
    same = all(labels.get(key) == value for key, value in wanted.labels.items())
    return same and annotations.get(ASKED_AT) == wanted.asked_at


def resource_of(allocatable: Mapping[str, int], amount: int) -> str:
    """What such a Job asks for on a node that offers this: whole GPUs where there are any. Blank: it offers too few."""
    enough = [name for name, number in allocatable.items() if is_gpu_resource(name) and number >= max(1, amount)]
    return min(enough, key=lambda name: (name != GPU, name), default="")


def job_for(wanted: WantedProof) -> dict[str, Any]:
    metadata = {"labels": wanted.labels, "annotations": {ASKED_AT: wanted.asked_at}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": wanted.name, **metadata},
        "spec": {
            "backoffLimit": 0,
            "completions": 1,
            "parallelism": 1,
            "activeDeadlineSeconds": int(DEADLINE.total_seconds()),
            "ttlSecondsAfterFinished": int(KEPT_FOR.total_seconds()),
            "template": {"metadata": metadata, "spec": _pod(wanted)},
        },
    }


def _pod(wanted: WantedProof) -> dict[str, Any]:
    on_it = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [wanted.node]}]}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [on_it]}}
    return {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "affinity": {"nodeAffinity": affinity},
        "tolerations": [EVERY_SUCH_TAINT],
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [_container(wanted)],
    }


def _container(wanted: WantedProof) -> dict[str, Any]:
    return {
        "name": CONTAINER,
        "image": wanted.image,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "resources": {"requests": LITTLE, "limits": {**MOST, wanted.resource: str(wanted.amount)}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
