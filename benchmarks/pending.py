"""The time to explain why pods wait, and whether the simulator's scheduler gives the same counts.

bin/bench pending [--seed N] [--nodes N] [--pods N] [--cases N]
"""

import argparse
import random
import secrets
import sys
import time
from collections import Counter
from datetime import UTC, datetime
from typing import Any

from benchmarks.figures import Figures
from capacity.wait_reasons.early_reasons import WaitFacts
from capacity.wait_reasons.explanation import explain
from capacity.wait_reasons.node_index import ComparedNode, NodeIndex
from capacity.wait_reasons.requirements import WaitingPod, read_pod, read_taint
from demo.numbers import whole
from simulator.actors.scheduler import no_node, wrong_node

NODES, PODS, CASES = 5000, 500, 2000
CASE_NODES = 60
FULL_S, INCREMENTAL_MS, AGREEMENT_RATIO = 2.0, 50.0, 0.99
NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
GPU = "nvidia.com/gpu"
PRODUCTS = ("NVIDIA-H100-80GB-HBM3", "NVIDIA-A100-SXM4-80GB", "NVIDIA-H200", "NVIDIA-L40S")
GPU_TAINT = {"key": GPU, "value": "present", "effect": "NoSchedule"}
TEAM_TAINT = {"key": "team", "value": "vision", "effect": "NoSchedule"}
GIB = 2**30


def main() -> None:
    asked = arguments()
    seed = secrets.randbelow(10**9) if asked.seed is None else asked.seed
    print(f"seed {seed}", file=sys.stderr, flush=True)
    figures = Figures("pending", {"seed": seed, "nodes": asked.nodes, "pods": asked.pods})
    figures.measure_reference()
    dice = random.Random(seed)
    nodes = [a_node(dice, number) for number in range(asked.nodes)]
    pods = [read(a_pod(dice, number)) for number in range(asked.pods)]

    began = time.process_time()
    index = NodeIndex(compared(node) for node in nodes)
    for pod in pods:
        explain(pod, index, WaitFacts(), now=NOW)
    figures.at_most("full_s", time.process_time() - began, FULL_S, "s")

    began = time.process_time()
    explain(read(a_pod(dice, asked.pods)), index, WaitFacts(), now=NOW)
    figures.at_most("incremental_ms", 1000 * (time.process_time() - began), INCREMENTAL_MS, "ms")
    figures.at_least("agreement_ratio", agreement_ratio(dice, asked.cases), AGREEMENT_RATIO, "", cases=asked.cases)
    figures.end()


def agreement_ratio(dice: random.Random, cases: int) -> float:
    """Returns the share of cases in which both find the same verdict with the same counts."""
    agree = 0
    for number in range(cases):
        nodes = [a_node(dice, place) for place in range(CASE_NODES)]
        pod = a_pod(dice, number)
        message = message_of(pod, nodes)
        found = explain(read(pod, message), NodeIndex(map(compared, nodes)), WaitFacts(has_events=True), now=NOW)
        agree += found.agreement_ratio == 1.0 if message else found.key == "fits"
    return agree / cases


def message_of(pod: dict[str, Any], nodes: list[dict[str, Any]]) -> str:
    """Returns the sentence of the simulator's scheduler. Blank: a node fits."""
    reasons: Counter[str] = Counter()
    for node in nodes:
        short = (
            f"Insufficient {name}"
            for name, amount in pod["requests"].items()
            if amount > node["allocatable"].get(name, 0) - node["requested"].get(name, 0)
        )
        why = wrong_node(pod, node) or list(short)
        reasons.update(why)
        if not why:
            return ""
    return no_node(len(nodes), reasons)


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


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bin/bench pending", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=whole(0, 10**9))
    parser.add_argument("--nodes", type=whole(1, 100_000), default=NODES)
    parser.add_argument("--pods", type=whole(1, 100_000), default=PODS)
    parser.add_argument("--cases", type=whole(1, 1_000_000), default=CASES)
    return parser.parse_args()


if __name__ == "__main__":
    main()
