"""What namespaces may have: quotas that are nearly used up, and the range of what one container may ask for."""

from typing import Any

from simulator.fleets.tenants import Workload, replica_set
from simulator.quantities import container_requests

Obj = dict[str, Any]


def quota_of(namespace: str, workloads: list[Workload]) -> Obj:
    """Just what the namespace's workloads ask for: nobody gets one GPU more there."""
    hard: dict[str, int] = {}
    for workload in workloads:
        if not workload.has_claims:
            key = f"requests.{workload.room}"
            hard[key] = hard.get(key, 0) + workload.gpus * workload.replicas
    limited = {key: str(count) for key, count in hard.items()}
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "accelerators", "namespace": namespace},
        "spec": {"hard": limited},
        "status": {"hard": limited, "used": limited},
    }


def range_of(namespace: str, workload: Workload) -> Obj:
    container = replica_set(workload)["spec"]["template"]["spec"]["containers"][0]
    most = {workload.room: str(container_requests(container)[workload.room])}
    limit = {"type": "Container", "default": {"cpu": "4", "memory": "64Gi"}, "max": {"cpu": "64", **most}}
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "one-container", "namespace": namespace},
        "spec": {"limits": [limit]},
    }
