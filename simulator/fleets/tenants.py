"""The people who use the GPUs: services, training, and a queue that takes whatever is left."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

Obj = dict[str, Any]

CLAIMED = "gpu.nvidia.com"  # a device class: these workloads claim their GPUs through DRA
PRIORITIES = {"inference": 100_000, "training": 10_000, "queue": -100}


class Owner(StrEnum):
    REPLICA_SET = "ReplicaSet"
    DEPLOYMENT = "Deployment"
    STATEFUL_SET = "StatefulSet"
    JOB = "Job"


@dataclass(frozen=True, slots=True)
class Workload:
    """Pods under one owner. `budget`: how many of its pods may be away at once; None: it has no PDB."""

    name: str
    namespace: str
    image: str
    gpus: int
    replicas: int
    priority: str
    product: str = ""
    budget: int | None = None
    room: str = "nvidia.com/gpu"  # the resource it asks `gpus` of, or the device class it claims them from

    owner: Owner = Owner.REPLICA_SET
    is_limited: bool = False  # its namespace has a quota, and a range for containers

    @property
    def has_claims(self) -> bool:
        return self.room == CLAIMED

    @property
    def labels(self) -> dict[str, str]:
        return {"app.kubernetes.io/name": self.name, "team": self.namespace}


def replica_set(workload: Workload) -> Obj:
    resources = {"cpu": str(4 * workload.gpus), "memory": f"{64 * workload.gpus}Gi"}
    limits = resources if workload.has_claims else {**resources, workload.room: str(workload.gpus)}
    pod_spec: Obj = {
        "priorityClassName": workload.priority,
        "priority": PRIORITIES[workload.priority],
        "terminationGracePeriodSeconds": 30,
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "containers": [
            {
                "name": "main",
                "image": workload.image,
                "resources": {"limits": limits, "requests": limits},
                "ports": [{"name": "http", "containerPort": 8000}],
            }
        ],
    }
    if workload.has_claims:
        pod_spec["resourceClaims"] = [{"name": "gpus", "resourceClaimTemplateName": workload.name}]
        pod_spec["containers"][0]["resources"]["claims"] = [{"name": "gpus"}]
    if workload.product:
        pod_spec["nodeSelector"] = {"nvidia.com/gpu.product": workload.product}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": workload.name, "namespace": workload.namespace, "labels": workload.labels},
        "spec": {
            "replicas": workload.replicas,
            "selector": {"matchLabels": workload.labels},
            "template": {"metadata": {"labels": workload.labels}, "spec": pod_spec},
        },
    }


def disruption_budget(workload: Workload) -> Obj:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": workload.name, "namespace": workload.namespace},
        "spec": {"maxUnavailable": workload.budget, "selector": {"matchLabels": workload.labels}},
    }


def priority_classes() -> list[Obj]:
    return [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
            "globalDefault": False,
            "preemptionPolicy": "Never" if value < 0 else "PreemptLowerPriority",
            "description": f"For {name}.",
        }
        for name, value in PRIORITIES.items()
    ]
