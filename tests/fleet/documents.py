"""Objects as an API server sends them. Each builder gives a whole one; name only what the test is about."""

from typing import Any

import msgspec

from kube.structs import DaemonSetSeen, NodeSeen, NvidiaDriverSeen, PodSeen, RevisionSeen

SINCE = "2026-11-21T08:00:00Z"
GPU_LABELS = {
    "nvidia.com/gpu.present": "true",
    "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
    "nvidia.com/gpu.count": "8",
    "nvidia.com/gpu.memory": "81559",
    "nvidia.com/cuda.driver-version.full": "580.95.05",
    "nvidia.com/gpu-driver-upgrade-state": "upgrade-done",
    "topology.kubernetes.io/zone": "zone-a",
    "node.kubernetes.io/instance-type": "hgx-h100",
}


def node_document(name: str = "gpu-001", **given: Any) -> dict[str, Any]:
    """`labels` and `annotations` None leaves the member out, as a server does with an empty one.

    `managed`: its field managers, by the times of their writes; of a cordoned one the last has the cordon.
    """
    labels, annotations = given.get("labels", GPU_LABELS), given.get("annotations", {"node.alpha/ttl": "0"})
    metadata = {"name": name, "uid": given.get("uid", f"uid-of-{name}"), "resourceVersion": given.get("version", "7")}
    metadata |= {"creationTimestamp": SINCE}
    metadata |= {} if labels is None else {"labels": labels}
    metadata |= {} if annotations is None else {"annotations": annotations}
    if managed := given.get("managed", ()):
        cordon = {"f:spec": {"f:unschedulable": {}}} if given.get("spec", {}).get("unschedulable") else {}
        metadata["managedFields"] = [_managed(each, {"f:status": {"f:capacity": {}}}) for each in managed[:-1]]
        metadata["managedFields"].append(_managed(managed[-1], {"f:metadata": {"f:labels": {".": {}}}} | cordon))
    ready = {
        "type": "Ready",
        "status": given.get("ready", "True"),
        "reason": "KubeletReady",
        "lastTransitionTime": SINCE,
    }
    there = given["resources"] if "resources" in given else {"nvidia.com/gpu": given.get("gpus", 8)}
    to_be_had = (there or {}) | ({"nvidia.com/gpu": given["allocatable"]} if "allocatable" in given else {})
    memory = {"type": "MemoryPressure", "status": "False", "lastHeartbeatTime": given.get("heartbeat", SINCE)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata,
        "spec": {"podCIDR": "10.0.0.0/24"} | given.get("spec", {}),
        "status": {
            "capacity": {"cpu": "128", "memory": "2113Gi"} | _quantities(there),
            "allocatable": {"cpu": "127", "memory": "2100Gi"} | _quantities(given.get("allocatables", to_be_had)),
            "conditions": [memory, ready, *given.get("conditions", ())],
            "nodeInfo": {"kernelVersion": "5.15.0-122-generic", "osImage": "Ubuntu 22.04.5 LTS"}
            | given.get("system", {}),
        },
    }


def _managed(manager: str, fields: dict[str, Any]) -> dict[str, Any]:
    """As kubectl shows it with --show-managed-fields."""
    of = {"manager": manager, "operation": "Update", "apiVersion": "v1", "time": SINCE}
    return of | {"fieldsType": "FieldsV1", "fieldsV1": fields}


def _quantities(amounts: dict[str, int] | None) -> dict[str, str]:
    return {name: str(amount) for name, amount in (amounts or {}).items()}


def time_sliced(replicas: int, *, how: str = "time-slicing") -> dict[str, str]:
    """The labels of a node whose GPUs are shared."""
    return GPU_LABELS | {
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3-SHARED",
        "nvidia.com/gpu.replicas": str(replicas),
        "nvidia.com/gpu.sharing-strategy": how,
    }


def mig_mixed(slices: dict[str, int], *, config: str = "custom", state: str = "success") -> dict[str, str]:
    """The labels of a node with these slices, by profile."""
    labels = GPU_LABELS | {"nvidia.com/mig.strategy": "mixed", "nvidia.com/gpu.replicas": "0"}
    labels |= {"nvidia.com/mig.config": config, "nvidia.com/mig.config.state": state}
    for profile, count in slices.items():
        labels |= {
            f"nvidia.com/mig-{profile}.count": str(count),
            f"nvidia.com/mig-{profile}.replicas": "1",
            f"nvidia.com/mig-{profile}.sharing-strategy": "none",
            f"nvidia.com/mig-{profile}.product": f"NVIDIA-H100-80GB-HBM3-MIG-{profile}",
        }
    return labels


def a_node_seen(name: str = "gpu-001", **given: Any) -> NodeSeen:
    return msgspec.convert(node_document(name, **given), NodeSeen, strict=False)


def pod_document(name: str = "train-0", **given: Any) -> dict[str, Any]:
    gpus = given.get("gpus", 1)
    resources = {"limits": {"nvidia.com/gpu": str(gpus)}, "requests": {"nvidia.com/gpu": str(gpus)}} if gpus else {}
    ready = {"type": "Ready", "status": given.get("ready", "True"), "lastTransitionTime": SINCE}
    return {
        "metadata": {
            "name": name,
            "namespace": given.get("namespace", "research"),
            "uid": given.get("uid", f"uid-of-{name}"),
            "resourceVersion": "9",
            "creationTimestamp": SINCE,
            "labels": given.get("labels", {"app": "train"}),
            "deletionTimestamp": given.get("leaving_since"),
            "ownerReferences": [
                {"kind": "Job", "name": "train", "uid": given.get("owner_uid", "uid-of-job"), "controller": True}
            ],
        },
        "spec": {
            "nodeName": given.get("node", "gpu-001"),
            "containers": given.get("containers", [{"name": "main", "image": "train:1", "resources": resources}]),
            "initContainers": given.get("init_containers", []),
            "resources": given.get("of_pod"),
            "volumes": given.get("volumes", [{"name": "token", "projected": {}}]),
        },
        "status": {
            "phase": given.get("phase", "Running"),
            "startTime": SINCE,
            "conditions": [ready, *given.get("conditions", [])],
            "containerStatuses": given.get("statuses", [{"name": "main", "ready": True, "restartCount": 2}]),
        },
    }


def a_pod_seen(name: str = "train-0", **given: Any) -> PodSeen:
    return msgspec.convert(pod_document(name, **given), PodSeen, strict=False)


def a_daemonset_seen(name: str = "nvidia-driver", **given: Any) -> DaemonSetSeen:
    labels = given.get(
        "labels", {"app": "nvidia-gpu-driver-ubuntu22.04-1", "app.kubernetes.io/component": "nvidia-driver"}
    )
    document = {
        "metadata": {
            "name": name,
            "namespace": "gpu-operator",
            "uid": f"uid-of-{name}",
            "generation": 3,
            "ownerReferences": [{"kind": "NVIDIADriver", "name": "h100", "uid": "uid-of-h100", "controller": True}],
        },
        "spec": {
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "containers": [
                        {"name": "nvidia-driver-ctr", "image": "nvcr.io/nvidia/driver:580.95.05-ubuntu22.04"}
                    ],
                    "nodeSelector": {"nvidia.com/gpu.deploy.driver": "true"},
                },
            },
        },
        "status": {"observedGeneration": 2, "desiredNumberScheduled": 4, "numberReady": 3, "updatedNumberScheduled": 1},
    }
    return msgspec.convert(document, DaemonSetSeen, strict=False)


def a_revision_seen(**given: Any) -> RevisionSeen:
    labels = {"app.kubernetes.io/component": "nvidia-driver", "controller-revision-hash": "6d5f7c"}
    document = {
        "metadata": {
            "name": "nvidia-driver-6d5f7c",
            "namespace": "gpu-operator",
            "uid": "uid-of-revision",
            "labels": given.get("labels", labels),
            "ownerReferences": [
                {"kind": "DaemonSet", "name": "nvidia-driver", "uid": "uid-of-nvidia-driver", "controller": True}
            ],
        },
        "revision": 2,
    }
    return msgspec.convert(document, RevisionSeen)


def a_driver_seen(**given: Any) -> NvidiaDriverSeen:
    document = {
        "metadata": {"name": "h100", "uid": "uid-of-h100", "generation": 5, "resourceVersion": "11"}
        | given.get("metadata", {}),
        "spec": {
            "version": "580.95.05",
            "repository": "nvcr.io/nvidia",
            "image": "driver",
            "nodeSelector": {"pool": "h100"},
        },
        "status": {"state": "ready", "conditions": given.get("conditions", [])},
    }
    return msgspec.convert(document, NvidiaDriverSeen)
