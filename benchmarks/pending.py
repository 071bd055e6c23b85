"""The time to explain why pods wait, and whether the simulator's scheduler gives the same counts.

bin/bench pending [--seed N] [--nodes N] [--pods N] [--cases N] [--kubeconfig F]

With a kubeconfig, a kube-scheduler on that API server judges the cases too, and each proposed change is applied. The
variable QUARTERDECK_TEST_KUBECONFIG names one as well.
"""

import argparse
import os
import random
import secrets
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import benchmarks.django_apps  # noqa: F401 - before modules that import models
from benchmarks.figures import Figures
from benchmarks.pending_cases import NOW, a_node, a_pod, compared, read
from benchmarks.pending_rules import csi_nodes, neighbours_of, pods_around, with_rules, with_volumes
from benchmarks.real_scheduler import compare_with_scheduler
from capacity.wait_reasons.early_reasons import WaitFacts
from capacity.wait_reasons.explanation import explain
from capacity.wait_reasons.node_index import NodeIndex
from capacity.wait_reasons.obstacles import PODS
from demo.numbers import whole
from simulator.actors.scheduler import no_node, wrong_node

NODES, WAITING, CASES = 5000, 500, 2000
CASE_NODES = 60
FULL_S, INCREMENTAL_MS, AGREEMENT_RATIO, WRONG_FIX_RATIO = 2.0, 50.0, 0.99, 0.01


def main() -> None:
    asked = arguments()
    seed = secrets.randbelow(10**9) if asked.seed is None else asked.seed
    print(f"seed {seed}", file=sys.stderr, flush=True)
    figures = Figures("pending", {"seed": seed, "nodes": asked.nodes, "pods": asked.pods})
    figures.measure_reference()
    dice = random.Random(seed)
    nodes = [a_node(dice, number) for number in range(asked.nodes)]
    pods = [with_volumes(read(with_rules(dice, a_pod(dice, number)))) for number in range(asked.pods + 1)]
    places = {node["metadata"]["name"]: compared(node).key for node in nodes}
    on_nodes = pods_around(dice, nodes)
    around = neighbours_of(on_nodes, pods, places, csi_nodes(dice, nodes, on_nodes))

    began = time.process_time()
    index = NodeIndex(map(compared, nodes), around)
    for pod in pods[1:]:
        explain(pod, index, WaitFacts(), now=NOW)
    figures.at_most("full_s", time.process_time() - began, FULL_S, "s")

    began = time.process_time()
    explain(pods[0], index, WaitFacts(), now=NOW)
    figures.at_most("incremental_ms", 1000 * (time.process_time() - began), INCREMENTAL_MS, "ms")
    figures.at_least("agreement_ratio", agreement_ratio(dice, asked.cases), AGREEMENT_RATIO, "", cases=asked.cases)
    if asked.kubeconfig:
        real = compare_with_scheduler(asked.kubeconfig, dice, asked.cases)
        named = {"cases": real.cases, "scheduled": real.scheduled}
        figures.at_least("real_agreement_ratio", real.ratio, AGREEMENT_RATIO, "", **named)
        figures.at_least("real_counts_ratio", real.counts_ratio, AGREEMENT_RATIO, "", **named)
        unread = {"changes": real.fixes, "not_applied": real.unread}
        figures.at_most("wrong_fix_ratio", real.wrong_fix_ratio, WRONG_FIX_RATIO, "", **unread)
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
        full = ["Too many pods"] if node[PODS] >= node["allocatable"][PODS] else []
        why = wrong_node(pod, node) or [*full, *short]
        reasons.update(why)
        if not why:
            return ""
    return no_node(len(nodes), reasons)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bin/bench pending", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=whole(0, 10**9))
    parser.add_argument("--nodes", type=whole(1, 100_000), default=NODES)
    parser.add_argument("--pods", type=whole(1, 100_000), default=WAITING)
    parser.add_argument("--cases", type=whole(1, 1_000_000), default=CASES)
    given = os.environ.get("QUARTERDECK_TEST_KUBECONFIG")
    parser.add_argument("--kubeconfig", type=Path, default=Path(given) if given else None)
    return parser.parse_args()


if __name__ == "__main__":
    main()
