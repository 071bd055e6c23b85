"""What teams of the demo ask the cluster for beside the fleet's own work: pods that wait, and one that does nothing."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

PRODUCT = "nvidia.com/gpu.product"
GPU = "nvidia.com/gpu"
# The first plan that the demo suggests takes a100: what teams and the timetable do, they do elsewhere.
H100 = "NVIDIA-H100-80GB-HBM3"
NOWHERE = "NVIDIA-H200"  # a product that no fleet of the demo has
WORK = "hardware.example.com/work"  # by which a pod tells the simulator what it does
IMAGE = "nvcr.io/nvidia/pytorch:25.09-py3"
PRIORITIES = {"inference": 100_000, "training": 10_000, "queue": -100}  # of the fleet's PriorityClasses


@dataclass(frozen=True)
class Made:
    """An object, and the path of its kind, where it is made."""

    path: str
    body: Mapping[str, Any]

    @property
    def own_path(self) -> str:
        return f"{self.path}/{self.body['metadata']['name']}"


def namespace(name: str) -> Made:
    return Made("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


def quota(where: str, gpus: int) -> Made:
    body = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "gpus", "namespace": where},
        "spec": {"hard": {f"requests.{GPU}": str(gpus)}},
    }
    return Made(f"/api/v1/namespaces/{where}/resourcequotas", body)


def pods(
    where: str, name: str, *, gpus: int, count: int = 1, priority: str = "queue", product: str = H100, work: str = "",
    asks: Mapping[str, str] | None = None, **of_spec: Any,
) -> Made:  # fmt: skip
    """A ReplicaSet whose pods ask for `gpus` each, on nodes of the product. `work`: what they do; blank: as others.

    `asks` is requested in place of the GPUs or beside them, and `of_spec` replaces parts of the pods' spec.
    """
    labels = {"app.kubernetes.io/name": name, "team": where}
    asked = {GPU: str(gpus)} if gpus else {}
    asked |= {"cpu": str(4 * gpus or 4), "memory": f"{32 * gpus or 32}Gi"} | dict(asks or {})
    spec = {
        "priorityClassName": priority,
        "priority": PRIORITIES[priority],
        "tolerations": [{"key": GPU, "operator": "Exists", "effect": "NoSchedule"}],
        "containers": [{"name": "main", "image": IMAGE, "resources": {"limits": asked, "requests": asked}}],
        "nodeSelector": {PRODUCT: product},
        **of_spec,
    }
    metadata = {"labels": labels, **({"annotations": {WORK: work}} if work else {})}
    body = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": where, "labels": labels},
        "spec": {
            "replicas": count,
            "selector": {"matchLabels": labels},
            "template": {"metadata": metadata, "spec": spec},
        },
    }
    return Made(f"/apis/apps/v1/namespaces/{where}/replicasets", body)


def lasting() -> list[Made]:
    """What is there all the time: pods that wait, each for another reason, and one that holds GPUs for nothing."""
    return [
        *(namespace(team) for team in ("students", "robotics", "notebooks")),
        pods("robotics", "world-model", gpus=16),
        pods("robotics", "simulation", gpus=1, product=NOWHERE),
        quota("students", gpus=2),
        pods("students", "homework", gpus=1, count=4, priority="training"),
        pods("notebooks", "left-open", gpus=2, priority="inference", work="nothing"),
        *waiting(),
    ]


def waiting() -> list[Made]:
    """Pods that wait, each for a reason of its own: with those of `lasting`, ten for a newcomer to find."""
    claims = [{"name": "gpu", "resourceClaimName": "shared-gpu"}]
    return [
        namespace("speech"),
        pods("speech", "queued", gpus=4, schedulingGates=[{"name": "kueue.x-k8s.io/admission"}]),
        pods("speech", "gang", gpus=8, schedulerName="volcano"),
        pods("speech", "misspelt", gpus=1, product=f"{H100}-SXM"),
        pods("speech", "next-in-line", gpus=1, nodeSelector={}),
        pods("speech", "preprocessing", gpus=1, asks={"cpu": "500"}),
        pods("speech", "sliced", gpus=0, asks={f"{GPU.partition('/')[0]}/mig-4g.71gb": "1"}, nodeSelector={}),
        pods("speech", "claimed", gpus=0, nodeSelector={}, resourceClaims=claims),
    ]


def evaluation() -> list[Made]:
    """What comes for some minutes, and is worth more than the queue."""
    return [pods("robotics", "evaluation", gpus=1, count=16, priority="training")]
