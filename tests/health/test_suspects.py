"""Suspects: which property of the failed nodes is named, and when it is called a cause."""

import random

import pytest

from health.suspects import NodeOutcome, fisher, suspects_of


def nodes_of(failed: int, good: int, **properties):
    """Returns the failed nodes first. A property is given by the values of all nodes, or by their one value."""
    return [
        NodeOutcome(
            f"gpu-{place:03}",
            place < failed,
            {name: values if isinstance(values, str) else values[place] for name, values in properties.items()},
        )
        for place in range(failed + good)
    ]


# levers.md 7.3 of the statistics used here: all k failed nodes of n share what no good one has: 1 / C(n, k).
@pytest.mark.parametrize(
    ("nodes", "failed", "p"),
    [(5, 2, 0.10), (6, 3, 0.05), (8, 3, 0.018), (10, 3, 0.0083), (10, 4, 0.0048), (20, 2, 0.0053)],
)
def test_a_perfect_split_has_the_known_p(nodes, failed, p):
    assert fisher(failed, failed, failed, nodes) == pytest.approx(p, rel=0.03)


def test_names_the_kernel_that_only_failed_nodes_have():
    zones = ["a", "b"] * 6
    found = suspects_of(nodes_of(4, 8, kernel=["5.15"] * 4 + ["6.8"] * 8, zone=zones, gpu="H100"))

    assert found.title == "Probable cause: kernel"
    assert found.summary == "kernel 5.15: on 4 of 4 failed nodes and 0 of 8 good nodes."
    assert [one.is_cause for one in found.suspects] == [True]


def test_few_nodes_give_candidates_and_no_cause():
    found = suspects_of(nodes_of(1, 3, kernel=["5.15", "6.8", "6.8", "6.8"]))

    assert found.title == "Candidates; too few nodes for proof"
    assert found.suspects[0].title == "kernel 5.15"
    assert not found.suspects[0].is_cause


def test_properties_that_split_the_nodes_alike_are_one_suspect():
    kernels, images = ["5.15"] * 4 + ["6.8"] * 8, ["Ubuntu 22.04"] * 4 + ["Ubuntu 24.04"] * 8
    found = suspects_of(nodes_of(4, 8, kernel=kernels, **{"OS image": images}))

    assert [one.title for one in found.suspects] == ["kernel 5.15 and OS image Ubuntu 22.04"]
    assert found.suspects[0].corrected_p == found.suspects[0].p  # one split is one test


def test_a_property_with_several_values_counts_where_it_has_the_value():
    """Good nodes also run the image with CUDA 12.8, beside others; no failed node runs one with 12.2."""
    failed, good = frozenset({"12.8"}), frozenset({"12.2", "12.8"})
    old = suspects_of(nodes_of(4, 8, cuda=[failed] * 4 + [good] * 8))
    new = suspects_of(nodes_of(4, 8, cuda=[frozenset({"13.0"})] * 4 + [good] * 4 + [frozenset()] * 4))

    assert not old.suspects
    assert [(one.title, one.is_cause) for one in new.suspects] == [("cuda 13.0", True)]
    assert suspects_of(nodes_of(1, 1, cuda=[failed, ""])).unknown == ("cuda",)


def test_each_further_split_costs_proof():
    kernels = ["5.15"] * 3 + ["6.8"] * 7
    others = {f"label {n}": ["x" if (place >> (n % 4)) & 1 else "y" for place in range(10)] for n in range(4)}
    alone, beside = suspects_of(nodes_of(3, 7, kernel=kernels)), suspects_of(nodes_of(3, 7, kernel=kernels, **others))

    assert alone.suspects[0].p == beside.suspects[0].p
    assert alone.suspects[0].corrected_p < beside.suspects[0].corrected_p


def test_a_property_with_many_values_costs_no_more_than_one_with_two():
    kernels, zones = ["5.15"] * 4 + ["6.8"] * 8, ["a", "b"] * 6
    racks = [f"rack {place // 2}" for place in range(12)]

    beside_racks = suspects_of(nodes_of(4, 8, kernel=kernels, rack=racks)).suspects[0]
    beside_zones = suspects_of(nodes_of(4, 8, kernel=kernels, zone=zones)).suspects[0]

    assert beside_racks.is_cause
    assert beside_racks.corrected_p == beside_zones.corrected_p == pytest.approx(2 * beside_zones.p)


@pytest.mark.parametrize(
    ("failed", "good", "title"),
    [
        (0, 3, "No node failed"),
        (1, 0, "The only changed node failed: nothing to compare"),
        (4, 0, "All 4 nodes failed: nothing to compare"),
        (2, 2, "The failed nodes share nothing that good nodes lack"),
    ],
)
def test_says_when_there_is_nothing_to_compare(failed, good, title):
    found = suspects_of(nodes_of(failed, good, kernel="6.8"))

    assert (found.title, found.suspects) == (title, ())


def test_a_property_unknown_on_one_node_is_named_and_not_compared():
    found = suspects_of(nodes_of(2, 2, kernel=["5.15", "5.15", "6.8", ""]))

    assert (found.unknown, found.suspects) == (("kernel",), ())


def test_random_failures_seldom_name_a_cause():
    drawn = random.Random(20261128)
    named = 0
    for _ in range(1_000):
        number = drawn.randint(6, 40)
        failed = drawn.randint(1, number - 1)
        properties = {
            f"property {place}": [drawn.choice("abcdefgh"[: drawn.choice((2, 3, 8))]) for _ in range(number)]
            for place in range(7)
        }
        found = suspects_of(nodes_of(failed, number - failed, **properties))
        named += any(one.is_cause for one in found.suspects)
    assert named <= 50
