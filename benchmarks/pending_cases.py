"""Generated nodes and pods for the bench of waiting pods, as the API server has them and as they are compared."""

import random
from datetime import UTC, datetime
from typing import Any

from capacity.wait_reasons.node_index import ComparedNode
from capacity.wait_reasons.requirements import WaitingPod, read_pod, read_taint

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
GPU = "nvidia.com/gpu"
PRODUCTS = ("NVIDIA-H100-80GB-HBM3", "NVIDIA-A100-SXM4-80GB", "NVIDIA-H200", "NVIDIA-L40S")
GPU_TAINT = {"key": GPU, "value": "present", "effect": "NoSchedule"}
TEAM_TAINT = {"key": "team", "value": "vision", "effect": "NoSchedule"}
GIB = 2**30


def a_node(dice: random.Random, number: int) -> dict[str, Any]:
    """Returns a Node as the API server sends it, with amounts beside it."""
    gpus = dice.choice((0, 4, 8, 8, 8))
    labels = {"zone": f"zone-{dice.randrange(3)}", "rack": f"rack-{number // 16}", "cores": dice.choice(("64", "128"))}
    labels |= {"nvidia.com/gpu.product": dice.choice(PRODUCTS)} if gpus else {}
    return {
        "metadata": {"name": f"node-{number:05}", "labels": labels},
        "spec": {
            "unschedulable": dice.random() < 0.05,
            "taints": [*([GPU_TAINT] if gpus else []), *([TEAM_TAINT] if dice.random() < 0.2 else [])],
        },
        "allocatable": {GPU: gpus, "cpu": 128_000, "memory": 1024 * GIB},
        "requested": {
            GPU: dice.randrange(gpus + 1),
            "cpu": dice.randrange(128_000),
            "memory": dice.randrange(1024) * GIB,
        },
    }


def a_pod(dice: random.Random, number: int) -> dict[str, Any]:
    tolerations = [{"key": GPU, "operator": "Exists", "effect": "NoSchedule"}]
    if dice.random() < 0.3:
        tolerations.append({"key": "team", "operator": "Equal", "value": dice.choice(("vision", "speech"))})
    selector = {"nvidia.com/gpu.product": dice.choice((*PRODUCTS, "NVIDIA-B200"))} if dice.random() < 0.5 else {}
    selector |= {"rack": f"rack-{dice.randrange(20)}"} if dice.random() < 0.3 else {}
    near = {"key": "zone", "operator": dice.choice(("In", "NotIn")), "values": [f"zone-{dice.randrange(4)}"]}
    large = {"key": "cores", "operator": "Gt", "values": ["64"]}
    terms = [{"matchExpressions": dice.choice(([near], [near, large]))}] if dice.random() < 0.3 else []
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {
        "metadata": {"name": f"pod-{number}", "namespace": "team-a"},
        "spec": {
            "nodeSelector": selector,
            "tolerations": tolerations,
            **({"affinity": {"nodeAffinity": required}} if terms else {}),
        },
        "requests": {
            GPU: dice.choice((1, 2, 4, 8, 8, 16)),
            "cpu": dice.choice((4, 16, 64)) * 1000,
            "memory": dice.choice((32, 256)) * GIB,
        },
    }


def compared(node: dict[str, Any]) -> ComparedNode:
    name = node["metadata"]["name"]
    return ComparedNode(
        key=int(name[5:]), name=name, labels=node["metadata"]["labels"],
        taints=tuple(map(read_taint, node["spec"]["taints"])), is_cordoned=node["spec"]["unschedulable"],
        allocatable=node["allocatable"], requested=node["requested"], expected=node["allocatable"],
    )  # fmt: skip


def read(pod: dict[str, Any], message: str = "") -> WaitingPod:
    spec = pod["spec"]
    required = (
        spec.get("affinity", {}).get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution", {})
    )
    placement = {
        "scheduler": "default-scheduler",
        "node_selector": spec["nodeSelector"],
        "node_affinity": [term["matchExpressions"] for term in required.get("nodeSelectorTerms", [])],
        "tolerations": spec["tolerations"],
        "conditions": [{"type": "PodScheduled", "reason": "Unschedulable", "message": message}],
    }
    return read_pod(placement, name=pod["metadata"]["name"], requests=pod["requests"], claims=[], created_at=NOW)
