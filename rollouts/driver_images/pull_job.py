"""The Job that pulls one image on one node. Pure.

Its container ends at once and has no rights, mounts, token or host user. NVIDIA_VISIBLE_DEVICES is `void`, as the
operator sets it for this image, so that no runtime gives it GPUs. The pull policy `Always` makes the kubelet ask the
registry even if the image is on disk (kubernetes.io/docs/concepts/containers/images).

The Job uses the driver's service account without its token. A pod without an account gets `default` and its pull
secrets (kubernetes, plugin/pkg/admission/serviceaccount), which would test other credentials than the driver's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from gpu.labels import IMAGE_PULL, MANAGED_BY, OURS, PULLS_FOR
from operations.test_jobs.job_manifest import job_of

CONTAINER = "pull"
DEADLINE = timedelta(minutes=30)  # a driver's image has some hundred MB; a slow line needs up to this long
NOBODY = 65534
# Tolerations that the DaemonSet controller adds to its pods: like a driver pod, this pod runs on a cordoned node.
CORDONED = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}
OPENSHIFT = "openshift.driver-toolkit"  # label of the driver's pods; on OpenShift the namespace sets the user of a pod
LITTLE = {"cpu": "10m", "memory": "32Mi"}
MOST = {"cpu": "100m", "memory": "128Mi"}  # of a quota that wants limits


@dataclass(frozen=True)
class WantedPull:
    plan: str  # "plan-7"
    pull: int
    position: int
    node: str
    image: str
    asked_at: str

    @property
    def name(self) -> str:
        return f"quarterdeck-pull-{self.pull}-{self.position}"

    @property
    def labels(self) -> dict[str, str]:
        return {MANAGED_BY: OURS, PULLS_FOR: self.plan, IMAGE_PULL: f"{self.pull}-{self.position}"}


@dataclass(frozen=True)
class AsTheDriver:
    secrets: Sequence[str] = ()  # names of imagePullSecrets
    tolerations: Sequence[Mapping[str, Any]] = ()  # as sent
    labels: Mapping[str, str] = field(default_factory=dict)
    service_account: str = ""  # blank: the cluster gives pods none


def pods_for(plan: str) -> str:
    return f"{MANAGED_BY}={OURS},{PULLS_FOR}={plan}"


def job_for(wanted: WantedPull, like: AsTheDriver) -> dict[str, Any]:
    pod = {
        **({"serviceAccountName": like.service_account} if like.service_account else {}),
        "tolerations": [*(dict(each) for each in like.tolerations), CORDONED],
        "imagePullSecrets": [{"name": name} for name in like.secrets],
        "securityContext": {
            "runAsNonRoot": True,
            **({} if OPENSHIFT in like.labels else {"runAsUser": NOBODY, "runAsGroup": NOBODY}),
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(wanted.image)],
    }
    return job_of(wanted, pod, deadline=DEADLINE)


def _container(image: str) -> dict[str, Any]:
    return {
        "name": CONTAINER,
        "image": image,
        "imagePullPolicy": "Always",
        "command": ["/bin/true"],
        "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}],
        "resources": {"requests": LITTLE, "limits": MOST},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
