"""The Job that tests the GPUs of one node. Pure.

It requests GPUs as a tenant's pod does, so device plugin, runtime and driver are used the same way. It has no token,
rights or mounts. It tolerates a cordon and NoSchedule taints, but not NoExecute. The kubelet keeps the end of a failed
container's log as its message (FallbackToLogsOnError:
kubernetes.io/docs/tasks/debug/debug-application/determine-reason-pod-failure).
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from gpu.labels import GPU, MANAGED_BY, OURS, PROOF, PROVES_FOR
from gpu.resources import is_gpu_resource
from operations.test_jobs.job_manifest import job_of

CONTAINER = "test-job"
SHM = "shm"
CLAIM = {"name": "gpus"}  # as kubernetes.io/docs/concepts/scheduling-eviction/dynamic-resource-allocation
DEADLINE = timedelta(minutes=15)  # an image of some hundred MB is pulled, and a sample runs for seconds
LITTLE = {"cpu": "100m", "memory": "256Mi"}
MOST = {"cpu": "2", "memory": "2Gi"}  # of a quota that wants limits
# Without a request, the runtime gives the container the GPUs that its environment names:
# docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html.
EVERY_GPU = [
    {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"},
    {"name": "NVIDIA_DRIVER_CAPABILITIES", "value": "compute,utility"},
]
NO_GPU = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}]  # the toolkit leaves the container alone
KERNEL_LOG = "log_bundle"  # a Job that reads the kernel's ring buffer in place of GPUs
EVERY_SUCH_TAINT = {"operator": "Exists", "effect": "NoSchedule"}  # node.kubernetes.io/unschedulable among them


@dataclass(frozen=True)
class WantedTestJob:
    owner: str  # "plan-7", "operation-7"
    test_job: int
    node: str
    image: str
    resource: str  # nvidia.com/gpu, nvidia.com/mig-1g.10gb, …
    amount: int
    asked_at: str
    command: str = ""  # as a shell splits it; blank: the image's own
    prefix: str = "quarterdeck-proof"  # prefix of its name: rows of one table share it
    deadline: timedelta = DEADLINE
    runtime_class: str = ""  # blank: the node's default
    cpu: str = MOST["cpu"]
    memory: str = MOST["memory"]
    shm: str = ""  # size of /dev/shm; blank: the runtime's own
    reads_kernel_log: bool = False
    claim_template: str = ""  # of all GPUs, in place of the resource; blank: none
    requests: Mapping[str, int] = field(default_factory=dict)  # in place of the resource; empty: none

    @property
    def name(self) -> str:
        return f"{self.prefix}-{self.test_job}"

    @property
    def labels(self) -> dict[str, str]:
        return {MANAGED_BY: OURS, PROVES_FOR: self.owner, PROOF: str(self.test_job)}


def pods_for(owner: str) -> str:
    return f"{MANAGED_BY}={OURS},{PROVES_FOR}={owner}"


def resource_of(allocatable: Mapping[str, int], amount: int) -> str:
    """Returns the GPU resource to request, whole GPUs first; empty if the node offers too few."""
    enough = [name for name, number in allocatable.items() if is_gpu_resource(name) and number >= max(1, amount)]
    return min(enough, key=lambda name: (name != GPU, name), default="")


def job_for(wanted: WantedTestJob) -> dict[str, Any]:
    shared = {"name": SHM, "emptyDir": {"medium": "Memory", "sizeLimit": wanted.shm}}
    pod = {
        "tolerations": [EVERY_SUCH_TAINT],
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [_container(wanted)],
        **({"runtimeClassName": wanted.runtime_class} if wanted.runtime_class else {}),
        **({"volumes": [shared]} if wanted.shm else {}),
        **(
            {"resourceClaims": [{**CLAIM, "resourceClaimTemplateName": wanted.claim_template}]}
            if wanted.claim_template
            else {}
        ),
    }
    return job_of(wanted, pod, deadline=wanted.deadline)


def _container(wanted: WantedTestJob) -> dict[str, Any]:
    asked = wanted.requests or ({wanted.resource: wanted.amount} if wanted.amount and not wanted.claim_template else {})
    return {
        "name": CONTAINER,
        "image": wanted.image,
        **({"command": shlex.split(wanted.command)} if wanted.command else {}),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        **({} if wanted.amount else {"env": NO_GPU if wanted.reads_kernel_log else EVERY_GPU}),
        "resources": {
            "requests": LITTLE,
            "limits": {"cpu": wanted.cpu, "memory": wanted.memory}
            | {name: str(number) for name, number in asked.items()},
            **({"claims": [CLAIM]} if wanted.claim_template else {}),
        },
        **({"volumeMounts": [{"name": SHM, "mountPath": "/dev/shm"}]} if wanted.shm else {}),  # noqa: S108
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]} | ({"add": ["SYSLOG"]} if wanted.reads_kernel_log else {}),
            # Kubernetes gives capabilities to root alone: it has no ambient ones.
            **({"runAsUser": 0} if wanted.reads_kernel_log else {}),
        },
    }
