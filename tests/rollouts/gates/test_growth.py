"""A stage of thousands of nodes is evaluated in every round: no gate may compare each node with each."""

import time
from dataclasses import replace

import pytest

from rollouts.gates import GATES
from rollouts.lifecycle import TargetState
from tests.make import NOON
from tests.rollouts.make import a_pod_on_it, a_target, evidence

FEW, MANY = 200, 1600  # eight times as many: a gate that compares each with each takes sixty times as long
MOST_TIMES = 24


def cost_s(key: str, nodes: int) -> float:
    targets = [
        a_target(f"node-{number}", workloads=(a_pod_on_it(),), facts={"kernel": "6.8"}) for number in range(nodes)
    ]
    half = [replace(target, state=TargetState.CHANGING) for target in targets[: nodes // 2]]
    shown = evidence(*half, *targets[nodes // 2 :])
    best = float("inf")
    for _ in range(3):
        fresh = replace(shown)  # what it remembers is of one round
        began = time.thread_time()
        GATES[key]().evaluate(fresh, now=NOON)
        best = min(best, time.thread_time() - began)
    return best


@pytest.mark.nightly
@pytest.mark.parametrize("key", GATES)
def test_its_cost_grows_with_the_nodes_and_no_faster(key: str):
    assert cost_s(key, MANY) < max(MOST_TIMES * cost_s(key, FEW), 0.005)
