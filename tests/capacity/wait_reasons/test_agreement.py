"""The comparison by sets of nodes, against one that compares a node at a time."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given

from capacity.wait_reasons.answers import Change
from capacity.wait_reasons.changes import helpful_changes
from capacity.wait_reasons.early_reasons import WaitFacts
from capacity.wait_reasons.explanation import explain
from capacity.wait_reasons.near_misses import funnel_of
from capacity.wait_reasons.node_index import NodeIndex
from capacity.wait_reasons.obstacles import find_obstacles
from tests.capacity.wait_reasons.clusters import (
    GPU,
    NODES,
    PLACEMENTS,
    REQUESTS,
    a_node,
    a_pod,
    counted,
    facts_of,
    first_failure,
)
from tests.make import NOON


@given(nodes=NODES, placement=PLACEMENTS, requests=REQUESTS)
def test_nodes_are_counted_as_the_scheduler_counts_them(nodes, placement, requests):
    obstacles = find_obstacles(a_pod(placement=placement, requests=requests), NodeIndex(map(facts_of, nodes)))

    assert obstacles.counted_as_scheduler() == counted(nodes, placement, requests)
    fitting = {node.name for node in obstacles.index.nodes_of(obstacles.fitting)}
    assert fitting == {node["name"] for node in nodes if not first_failure(node, placement, requests)}


@given(nodes=NODES, placement=PLACEMENTS, requests=REQUESTS)
def test_every_pod_gets_one_sentence_and_a_funnel_that_adds_up(nodes, placement, requests):
    pod, index = a_pod(placement=placement, requests=requests, message="x"), NodeIndex(map(facts_of, nodes))

    found = explain(pod, index, WaitFacts(), now=NOON)

    assert found.title
    assert not found.title.endswith(".")
    assert all(change.text.endswith(".") for change in found.changes)
    steps = funnel_of(find_obstacles(pod, index))
    assert steps[0].left == len(nodes)
    for before, after in pairwise(steps):
        assert before.left - after.removed == after.left
    assert steps[-1].left == find_obstacles(pod, index).fitting.bit_count()
    assert all(miss.lacks for miss in found.near_misses)


@given(nodes=NODES, placement=PLACEMENTS, requests=REQUESTS)
def test_a_change_to_the_pod_makes_it_fit_on_as_many_nodes_as_it_says(nodes, placement, requests):
    """Each change is made, and the pod must then fit on those nodes once they are empty."""
    index = NodeIndex(map(facts_of, nodes))
    obstacles = find_obstacles(a_pod(placement=placement, requests=requests), index)
    if obstacles.candidates:
        return
    empty = [node | {"requested": {}} for node in nodes]

    for change in helpful_changes(obstacles):
        changed = made(change, placement, requests, empty)
        if changed is not None:
            after, its_requests, its_nodes = changed
            fits = [node for node in its_nodes if not first_failure(node, after, its_requests)]
            assert len(fits) >= change.fits_later > 0, change


def made(change: Change, placement: Any, requests: Any, nodes: Any) -> Any:
    """What there is after a change. None: it is a change of another sort."""
    text = change.text
    if text.startswith("Remove ") and text.endswith(" from the node selector."):
        label = text.removeprefix("Remove ").removesuffix(" from the node selector.")
        kept = {key: value for key, value in placement["node_selector"].items() if f"{key}={value}" != label}
        return placement | {"node_selector": kept}, requests, nodes
    if text.startswith("Change the node affinity"):
        return placement | {"node_affinity": []}, requests, nodes
    if text.startswith("Uncordon"):
        return placement, requests, [node | {"cordoned": False} for node in nodes]
    if text.startswith("Request at most ") and "GPU" in text:
        return placement, requests | {GPU: int(text.split()[3])}, nodes
    if text.startswith("Tolerate the taint "):
        taint = text.removeprefix("Tolerate the taint ").removesuffix(" in the pod template.")
        key, _, effect = taint.rpartition(":")
        key, _, value = key.partition("=")
        toleration = {"key": key, "operator": "Equal", "value": value, "effect": effect}
        return placement | {"tolerations": [*placement["tolerations"], toleration]}, requests, nodes
    return None


@pytest.mark.parametrize("number", [1, 9, 64, 65, 200])
def test_sets_have_a_bit_for_each_node(number):
    index = NodeIndex([a_node(f"n-{place}", gpus=place) for place in range(number)])

    assert [node.name for node in index.nodes_of(index.every)] == [f"n-{place}" for place in range(number)]
    assert index.offering(GPU, 5).bit_count() == max(0, number - 5)
