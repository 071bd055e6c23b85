"""Packing and spreading of pods, as numbers."""

import random
from collections import Counter
from math import ceil

from capacity.placements.placement_figures import UsedNode, pack_figures, spread_figures


def a_node(*pods: int, gpus: int = 8, kind: str = "H200") -> UsedNode:
    return UsedNode(kind, gpus, Counter(pods))


def test_packing_counts_the_nodes_that_it_would_free():
    figures = pack_figures([a_node(4), a_node(4), a_node(2, 2), a_node(8)])

    assert (figures.used, figures.needed, figures.freed, figures.free) == (4, 3, 1, 12)
    assert figures.is_broken


def test_pods_that_cannot_share_a_node_are_packed():
    figures = pack_figures([a_node(5), a_node(5), a_node(5)])

    assert (figures.freed, figures.is_broken) == (0, False)


def test_a_node_with_other_pods_is_never_freed_and_is_filled_first():
    mixed, own = UsedNode("H200", 8, {2: 1}, others=4), UsedNode("H200", 8, {2: 1})

    assert pack_figures([mixed, mixed]).freed == 0
    assert (pack_figures([mixed, own]).needed, pack_figures([mixed, own]).freed) == (1, 1)


def test_pods_move_only_between_nodes_of_one_kind():
    assert pack_figures([a_node(1), a_node(1, kind="L40S"), a_node(1, gpus=4)]).freed == 0


def test_a_few_partly_used_nodes_of_many_are_no_break():
    nodes = [a_node(8) for _ in range(98)]

    assert not pack_figures([*nodes, a_node(4), a_node(4)]).is_broken


def test_packing_never_needs_less_than_its_gpus_nor_more_than_the_used_nodes():
    dice = random.Random(1)
    for _ in range(200):
        nodes = [a_node(*(dice.randint(1, 4) for _ in range(dice.randint(1, 2)))) for _ in range(dice.randint(1, 12))]
        figures = pack_figures(nodes)
        total = sum(size * number for node in nodes for size, number in node.pods.items())
        assert ceil(total / 8) <= figures.needed <= figures.used


def test_a_workload_is_concentrated_with_more_than_half_of_its_pods_in_one_domain():
    workloads = {"together": {"a": 3}, "even": {"a": 2, "b": 2}, "alone": {"a": 1}, "most": {"a": 3, "b": 1}}

    figures = spread_figures(workloads, domains=2, unlabelled=1)

    assert [(each.name, each.domain, each.pods_in_domain) for each in figures.worst] == [
        ("most", "a", 3), ("together", "a", 3),
    ]  # fmt: skip
    assert (figures.workloads, figures.concentrated, figures.unlabelled) == (3, 2, 1)


def test_a_workload_is_not_concentrated_where_it_cannot_be_spread_further():
    assert not spread_figures({"near": {"a": 7, "b": 5}}, domains=2, unlabelled=0).concentrated
    assert not spread_figures({"three": {"a": 2, "b": 1}}, domains=2, unlabelled=0).concentrated
    assert not spread_figures({"all": {"a": 5}}, domains=1, unlabelled=0).concentrated
