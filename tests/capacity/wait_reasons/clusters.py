"""Builders of nodes and pods for the comparison, and a reference that compares one node at a time."""

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from capacity.wait_reasons.early_reasons import WaitFacts
from capacity.wait_reasons.explanation import explain
from capacity.wait_reasons.node_index import CORDON_KEY, ComparedNode, NodeIndex
from capacity.wait_reasons.obstacles import CPU, MEMORY
from capacity.wait_reasons.requirements import WaitingPod, read_pod, read_taint
from tests.make import NOON

GPU = "nvidia.com/gpu"
GIB = 2**30
PRODUCT = "nvidia.com/gpu.product"
TOLERATES_GPUS = {"key": GPU, "operator": "Exists", "value": "", "effect": "NoSchedule"}
GPU_TAINT = {"key": GPU, "value": "present", "effect": "NoSchedule"}


def a_node(name: str, *, gpus: int = 8, used: int = 0, taints: Any = (), **given: Any) -> ComparedNode:
    allocatable = given.pop("allocatable", {GPU: gpus, CPU: 128_000, MEMORY: 1024 * GIB})
    requested = given.pop("requested", {GPU: used})
    row = {"labels": {PRODUCT: "H100"}, "expected": {GPU: gpus}} | given
    return ComparedNode(
        key=hash(name) % 10_000, name=name, taints=tuple(map(read_taint, taints)), allocatable=allocatable,
        requested=requested, **row,
    )  # fmt: skip


def a_pod(*, gpus: int = 1, placement: Any = None, **given: Any) -> WaitingPod:
    requests = given.pop("requests", {GPU: gpus, CPU: 4_000, MEMORY: 32 * GIB})
    message = given.pop("message", "")
    conditions = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}]
    stored = {"scheduler": "default-scheduler", "tolerations": [TOLERATES_GPUS]} | (placement or {})
    stored |= {"conditions": conditions} if message else {}
    row = {"name": "team-a/train-0", "claims": [], "created_at": NOON - timedelta(minutes=1), "labels": {}} | given
    return read_pod(stored, requests=requests, **row)


def explained(pod: WaitingPod, *nodes: ComparedNode, now: datetime = NOON, **around: Any):
    return explain(pod, NodeIndex(nodes), WaitFacts(**around), now=now)


# What follows is the reference: kube-scheduler's filters, one node at a time, without the product's code.


def tolerates(toleration: dict[str, str], taint: dict[str, str]) -> bool:
    if toleration["effect"] and toleration["effect"] != taint["effect"]:
        return False
    if toleration["key"] and toleration["key"] != taint["key"]:
        return False
    if toleration["operator"] == "Exists":
        return True
    return bool(toleration["key"]) and toleration["value"] == taint["value"]


def holds(requirement: dict[str, Any], labels: dict[str, str], name: str) -> bool:
    has = {"metadata.name": name} if requirement.get("field") else labels
    key, values = requirement["key"], requirement["values"]
    if requirement["operator"] in ("Gt", "Lt"):
        try:
            a, b = int(has[key]), int(values[0])
        except (KeyError, ValueError, IndexError):
            return False
        return a > b if requirement["operator"] == "Gt" else a < b
    return {
        "In": has.get(key) in values,
        "NotIn": has.get(key) not in values,
        "Exists": key in has,
        "DoesNotExist": key not in has,
    }.get(requirement["operator"], False)


def first_failure(node: dict[str, Any], placement: dict[str, Any], requests: dict[str, int]) -> list[str]:
    tolerations = placement["tolerations"]
    cordon = {"key": CORDON_KEY, "value": "", "effect": "NoSchedule"}
    if node["cordoned"] and not any(tolerates(each, cordon) for each in tolerations):
        return ["cordon"]
    for taint in node["taints"]:
        if taint["effect"] != "PreferNoSchedule" and not any(tolerates(each, taint) for each in tolerations):
            return ["taint"]
    labels, terms = node["labels"], placement["node_affinity"]
    is_selected = all(labels.get(key) == value for key, value in placement["node_selector"].items())
    is_near = not terms or any(term and all(holds(each, labels, node["name"]) for each in term) for term in terms)
    if not (is_selected and is_near):
        return ["affinity"]
    free = {name: node["allocatable"].get(name, 0) - node["requested"].get(name, 0) for name in requests}
    return [f"resource:{name}" for name, amount in requests.items() if amount and amount > free[name]]


def counted(nodes: list[dict[str, Any]], placement: dict[str, Any], requests: dict[str, int]) -> dict[str, int]:
    return dict(Counter(why for node in nodes for why in first_failure(node, placement, requests)))


KEYS = st.sampled_from(["zone", "rack", "cores", PRODUCT])
VALUES = st.sampled_from(["a", "b", "8", "16", "-3", "", "x y"])
EFFECTS = st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule"])
OPERATORS = st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Near"])
REQUIREMENTS = st.fixed_dictionaries({"key": KEYS, "operator": OPERATORS, "values": st.lists(VALUES, max_size=3)})
NAMED = st.fixed_dictionaries(
    {
        "key": st.just("metadata.name"),
        "operator": st.sampled_from(["In", "NotIn"]),
        "values": st.lists(st.sampled_from(["node-0", "node-1"]), min_size=1, max_size=1),
        "field": st.just(True),
    }
)
NODES = st.lists(
    st.fixed_dictionaries(
        {
            "labels": st.dictionaries(KEYS, VALUES, max_size=4),
            "taints": st.lists(
                st.fixed_dictionaries({"key": st.sampled_from(["t", "u"]), "value": VALUES, "effect": EFFECTS}),
                max_size=2,
            ),
            "cordoned": st.booleans(),
            "allocatable": st.fixed_dictionaries({}, optional={GPU: st.integers(0, 8), CPU: st.integers(0, 8)}),
            "requested": st.fixed_dictionaries({}, optional={GPU: st.integers(0, 8), CPU: st.integers(0, 9)}),
        }
    ),
    max_size=12,
).map(lambda nodes: [node | {"name": f"node-{number}"} for number, node in enumerate(nodes)])
PLACEMENTS = st.fixed_dictionaries(
    {
        "node_selector": st.dictionaries(KEYS, VALUES, max_size=2),
        "node_affinity": st.lists(st.lists(REQUIREMENTS | NAMED, max_size=3), max_size=3),
        "tolerations": st.lists(
            st.fixed_dictionaries(
                {
                    "key": st.sampled_from(["", "t", "u", CORDON_KEY]),
                    "operator": st.sampled_from(["Equal", "Exists"]),
                    "value": VALUES,
                    "effect": st.sampled_from(["", "NoSchedule", "NoExecute"]),
                }
            ),
            max_size=3,
        ),
    }
)
REQUESTS = st.fixed_dictionaries({GPU: st.integers(1, 8)}, optional={CPU: st.integers(1, 9)})


def facts_of(node: dict[str, Any]) -> ComparedNode:
    return ComparedNode(
        key=1, name=node["name"], labels=node["labels"], taints=tuple(map(read_taint, node["taints"])),
        is_cordoned=node["cordoned"], allocatable=node["allocatable"], requested=node["requested"],
    )  # fmt: skip
