"""Generated nodes and pods for the bench of waiting pods, as the API server has them and as they are compared."""

import random
from datetime import UTC, datetime
from typing import Any

import msgspec

from capacity.wait_reasons.node_index import ComparedNode
from capacity.wait_reasons.obstacles import PODS
from capacity.wait_reasons.requirements import WaitingPod, read_pod, read_taint
from fleet.observer.mirror.rows.node import node_row
from fleet.observer.mirror.rows.pod import pod_row
from kube.structs import NodeSeen, PodSeen

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
GPU, MIG = "nvidia.com/gpu", "nvidia.com/mig-1g.10gb"
PRODUCTS = ("NVIDIA-H100-80GB-HBM3", "NVIDIA-A100-SXM4-80GB", "NVIDIA-H200", "NVIDIA-L40S")
GPU_TAINT = {"key": GPU, "value": "present", "effect": "NoSchedule"}
# By taint, the share of nodes that have it.
TAINTS = (
    ({"key": "team", "value": "vision", "effect": "NoSchedule"}, 0.2),
    ({"key": "draining", "effect": "NoExecute"}, 0.05),
    ({"key": "spot", "value": "true", "effect": "PreferNoSchedule"}, 0.1),
    ({"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"}, 0.02),
)
TOLERATIONS = (
    ({"key": "team", "operator": "Equal", "value": "vision"}, 0.15),
    ({"key": "team", "operator": "Equal", "value": "speech", "effect": "NoSchedule"}, 0.15),
    ({"key": "draining", "operator": "Exists", "effect": "NoExecute"}, 0.1),
    ({"key": "draining", "operator": "Exists", "effect": "NoSchedule"}, 0.05),
    ({"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}, 0.03),
    ({"operator": "Exists"}, 0.02),
)
MIB, GIB = 2**20, 2**30
PODS_PER_NODE = 110


def a_node(dice: random.Random, number: int) -> dict[str, Any]:
    """Returns a Node as the API server sends it, with amounts beside it."""
    gpus, is_sliced = dice.choice((0, 4, 8, 8, 8)), dice.random() < 0.1
    labels = {"zone": f"zone-{dice.randrange(3)}", "rack": f"rack-{number // 16}"}
    labels |= {"topology.kubernetes.io/zone": labels["zone"]} if dice.random() < 0.8 else {}
    labels["kubernetes.io/hostname"] = f"node-{number:05}"
    labels |= {"cores": dice.choice(("64", "128", "many"))} if dice.random() < 0.9 else {}
    labels |= {"nvidia.com/gpu.product": dice.choice(PRODUCTS)} if gpus else {}
    resource = MIG if is_sliced else GPU
    pods = PODS_PER_NODE if dice.random() < 0.1 else dice.randrange(PODS_PER_NODE)
    whole = {"cpu": dice.choice((64, 96, 128, 128)) * 1000, "memory": dice.choice((512, 1000, 1024)) * GIB}
    return {
        "metadata": {"name": f"node-{number:05}", "labels": labels},
        "spec": {
            "unschedulable": dice.random() < 0.05,
            "taints": [*([GPU_TAINT] if gpus else []), *_some(dice, TAINTS)],
        },
        "allocatable": {resource: gpus, **whole, PODS: PODS_PER_NODE},
        PODS: pods,
        "requested": {
            resource: dice.randrange(gpus + 1),
            "cpu": dice.randrange(whole["cpu"]),
            "memory": dice.randrange(whole["memory"] // MIB) * MIB,
        },
    }


def a_pod(dice: random.Random, number: int) -> dict[str, Any]:
    product = dice.choice((*PRODUCTS, "NVIDIA-B200", "NVIDIA-H100-80GB-HBM2"))
    selector = {"nvidia.com/gpu.product": product} if dice.random() < 0.5 else {}
    selector |= {"rack": f"rack-{dice.randrange(20)}"} if dice.random() < 0.3 else {}
    terms = [_term(dice) for _ in range(dice.choice((1, 1, 2)))] if dice.random() < 0.3 else []
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {
        "metadata": {"name": f"pod-{number}", "namespace": "team-a"},
        "spec": {
            "nodeSelector": selector,
            "tolerations": [
                {"key": GPU, "operator": "Exists", "effect": "NoSchedule"},
                *_some(dice, TOLERATIONS),
            ],
            **({"affinity": {"nodeAffinity": required}} if terms else {}),
        },
        "requests": {
            **({MIG: dice.choice((1, 2, 4))} if dice.random() < 0.1 else {GPU: dice.choice((1, 2, 4, 8, 8, 16))}),
            "cpu": dice.choice((4000, 16_500, 64_000, 100_000)),
            "memory": dice.choice((32, 256, 2048)) * GIB if dice.random() < 0.9 else 1536 * MIB,
        },
    }


def compared(node: dict[str, Any]) -> ComparedNode:
    name = node["metadata"]["name"]
    return ComparedNode(
        key=int(name[5:]), name=name, labels=node["metadata"]["labels"],
        taints=tuple(map(read_taint, node["spec"]["taints"])), is_cordoned=node["spec"]["unschedulable"],
        allocatable=node["allocatable"], requested=_requested(node), expected=node["allocatable"],
    )  # fmt: skip


def observed_node(answer: bytes, node: dict[str, Any]) -> ComparedNode:
    """Returns a node as our rows have it, from the answer of an API server."""
    row = node_row(msgspec.json.decode(answer, type=NodeSeen))
    offered = row["allocatable"] | {"cpu": row["cpu_allocatable_m"], "memory": row["memory_allocatable_bytes"]}
    offered |= {PODS: row["pods_allocatable"]}
    return ComparedNode(
        key=int(row["name"][5:]), name=row["name"], labels=row["labels"], taints=tuple(map(read_taint, row["taints"])),
        is_cordoned=row["is_unschedulable"], allocatable=offered, requested=_requested(node), expected=row["expected"],
    )  # fmt: skip


def _requested(node: dict[str, Any]) -> dict[str, int]:
    return node["requested"] | {PODS: node[PODS]}


def observed_pod(answer: bytes) -> WaitingPod:
    """Returns a pod as our rows have it, from the answer of an API server."""
    row = pod_row(msgspec.json.decode(answer, type=PodSeen))
    requests = {**row["resources"], "cpu": row["cpu_m"], "memory": row["memory_bytes"], PODS: 1}
    name = f"{row['namespace']}/{row['name']}"
    return read_pod(
        row["placement"], name=name, requests=requests, claims=row["claims"], created_at=NOW, labels=row["labels"]
    )


def read(pod: dict[str, Any], message: str = "") -> WaitingPod:
    scheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    named = pod["metadata"] | {"uid": "0", "resourceVersion": "0"}
    status = {"phase": "Pending", "conditions": [scheduled]}
    return observed_pod(msgspec.json.encode(pod_object(pod | {"metadata": named}) | {"status": status}))


def node_object(node: dict[str, Any]) -> dict[str, Any]:
    """Returns a Node to create."""
    offered = quantities(node["allocatable"])
    status = {"allocatable": offered, "capacity": offered}
    return {"apiVersion": "v1", "kind": "Node", "metadata": node["metadata"], "spec": node["spec"], "status": status}


def pod_object(pod: dict[str, Any]) -> dict[str, Any]:
    """Returns a Pod to create, with one container."""
    amounts = quantities(pod["requests"])
    container = {
        "name": "main", "image": "none", "resources": {"requests": amounts, "limits": amounts},
        "ports": pod.get("ports", []),
    }  # fmt: skip
    spec = pod["spec"] | {"containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": pod["metadata"], "spec": spec}


def quantities(amounts: dict[str, int]) -> dict[str, str]:
    return {name: f"{amount}m" if name == "cpu" else str(amount) for name, amount in amounts.items()}


def _term(dice: random.Random) -> dict[str, Any]:
    """Returns a term of node affinity, rarely an empty one, which takes no node."""
    zones = [f"zone-{dice.randrange(4)}" for _ in range(dice.choice((1, 2)))]
    wanted = (
        {"key": "zone", "operator": dice.choice(("In", "NotIn")), "values": zones},
        {"key": "cores", "operator": dice.choice(("Gt", "Lt")), "values": [dice.choice(("64", "100"))]},
        {"key": "cores", "operator": dice.choice(("Exists", "DoesNotExist"))},
    )
    fields = [{"key": "metadata.name", "operator": "NotIn", "values": ["node-00001"]}]
    expressions = dice.sample(wanted, dice.choice((0, 1, 1, 1, 2)))
    return {"matchExpressions": expressions} | ({"matchFields": fields} if dice.random() < 0.1 else {})


def _some(dice: random.Random, shares: Any) -> list[dict[str, str]]:
    return [each for each, share in shares if dice.random() < share]
