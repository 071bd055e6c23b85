"""The Job that pulls one image on one node. Pure.

Its container ends at once and has no rights, mounts, token or host user. NVIDIA_VISIBLE_DEVICES is `void`, as the
operator sets it for this image, so that no runtime gives it GPUs. The pull policy `Always` makes the kubelet ask the
registry even if the image is on disk (kubernetes.io/docs/concepts/containers/images).

A driver's image is pulled under the driver's service account, without its token. A pod without an account gets
`default` and its pull secrets (kubernetes, plugin/pkg/admission/serviceaccount), which would test other credentials.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any, ClassVar

from kube.structs.daemonset import PodTemplate
from operations.test_jobs.job_manifest import WantedJob, job_of
from operations.test_jobs.test_job import EVERY_SUCH_TAINT

CONTAINER = "pull"
DEADLINE = timedelta(minutes=30)  # an image has some hundred MB or more; a slow line needs up to this long
NOBODY = 65534
# Tolerations that the DaemonSet controller adds to its pods: like a driver pod, this pod runs on a cordoned node.
CORDONED = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}
OPENSHIFT = "openshift.driver-toolkit"  # label of the driver's pods; on OpenShift the namespace sets the user of a pod
LITTLE = {"cpu": "10m", "memory": "32Mi"}
MOST = {"cpu": "100m", "memory": "128Mi"}  # of a quota that wants limits
MOST_DRIVER_NODES = 200


@dataclass(frozen=True)
class PullPod:
    """The properties of a pod that decide whether its node may pull the image."""

    service_account: str = ""  # blank: the cluster gives pods none
    secrets: Sequence[str] = ()  # names of imagePullSecrets
    tolerations: Sequence[Mapping[str, Any]] = (EVERY_SUCH_TAINT,)  # as sent
    names_user: bool = False  # it runs as nobody; an image whose user is root is else pulled and not started


@dataclass(frozen=True)
class DriverPull:
    """The option of an operation that pulls driver images. People cannot set it."""

    name: ClassVar[str] = "driver_pull"

    from_version: str
    to_version: str
    images: Mapping[str, str]  # as rows had them, by node UID

    @property
    def as_option(self) -> dict[str, Any]:
        return {self.name: asdict(self)}

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> DriverPull | None:
        """Returns the driver images of an operation. None: it pulls an image that somebody named."""
        return cls(**options[cls.name]) if cls.name in options else None


def like_driver(template: PodTemplate, spec: Mapping[str, Any]) -> PullPod:
    """Returns the properties of a driver's pod. The template is not enough: a service account may add to its pods."""
    said = [
        {"key": each.key, "operator": each.operator, "value": each.value, "effect": each.effect}
        for each in template.spec.tolerations or ()
    ]
    return PullPod(
        str(spec.get("serviceAccountName") or ""),
        [str(each["name"]) for each in spec.get("imagePullSecrets") or () if each.get("name")],
        [*({name: value for name, value in each.items() if value} for each in said), CORDONED],
        names_user=OPENSHIFT not in template.labels,
    )


def pull_job_for(wanted: WantedJob, image: str, like: PullPod) -> dict[str, Any]:
    pod = {
        **({"serviceAccountName": like.service_account} if like.service_account else {}),
        "tolerations": [dict(each) for each in like.tolerations],
        "imagePullSecrets": [{"name": name} for name in like.secrets],
        "securityContext": {
            "runAsNonRoot": True,
            **({"runAsUser": NOBODY, "runAsGroup": NOBODY} if like.names_user else {}),
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(image)],
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
