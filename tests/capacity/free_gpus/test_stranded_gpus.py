"""Free GPUs: each is usable, or stranded by one cause."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.free_gpus.stranded_gpus import NodeWithRoom, StrandedBy, UsualPod, free_gpus

EIGHT = UsualPod(gpus=8)
SMALL, LARGE = "nvidia.com/mig-1g.10gb", "nvidia.com/mig-3g.40gb"


@pytest.mark.parametrize(
    ("node", "cause"),
    [
        (NodeWithRoom(8, is_ready=False, is_cordoned=True), StrandedBy.NOT_READY),
        (NodeWithRoom(8, is_cordoned=True, is_tainted=True), StrandedBy.CORDON),
        (NodeWithRoom(8, is_tainted=True), StrandedBy.TAINT),
        (NodeWithRoom(7), StrandedBy.LEFTOVER),
    ],
)
def test_the_first_cause_counts(node, cause):
    found = free_gpus([node], EIGHT)

    assert found.parts == [(cause, node.gpus, 1)]
    assert found.usable == 0


def test_pods_of_each_size_are_counted_node_by_node():
    found = free_gpus([NodeWithRoom(8), NodeWithRoom(7), NodeWithRoom(3)], EIGHT)

    assert dict(found.pods) == {1: 18, 2: 8, 4: 3, 8: 1}
    assert (found.free, found.usable, found.parts) == (18, 8, [(StrandedBy.LEFTOVER, 10, 2)])


def test_gpus_without_cpu_or_memory_for_the_usual_pod_are_stranded_by_the_scarcer():
    usual = UsualPod(gpus=1, cpu_m=10_000, memory_bytes=100)
    scarce_cpu, scarce_memory = NodeWithRoom(4, cpu_m=25_000, memory_bytes=900), NodeWithRoom(4, memory_bytes=-5)

    found = free_gpus([scarce_cpu, scarce_memory], usual)

    assert found.parts == [(StrandedBy.CPU, 2, 1), (StrandedBy.MEMORY, 4, 1)]
    assert (found.usable, found.pods[1]) == (2, 2)


def test_slices_that_no_pod_requests_are_stranded():
    found = free_gpus([NodeWithRoom(slices={SMALL: 2 / 7, LARGE: 3 / 7})], UsualPod(profiles=frozenset({SMALL})))

    assert found.usable == pytest.approx(2 / 7)
    assert found.parts == [(StrandedBy.PROFILE, pytest.approx(3 / 7), 1)]
    assert found.pods[1] == 0, "a slice is no whole GPU"


def in_domains(gpus: int, domain: str, rack: str, **given) -> NodeWithRoom:
    return NodeWithRoom(gpus, domains={"NVLink domain": domain, "rack": rack}, **given)


def test_the_largest_gang_is_that_of_the_best_domain():
    nodes = [
        in_domains(8, "a", "r1"), in_domains(7, "a", "r1"), in_domains(8, "b", "r1"), in_domains(8, "b", "r1"),
        in_domains(8, "", "r2"), in_domains(8, "b", "r1", is_cordoned=True), in_domains(0, "c", "r3"),
    ]  # fmt: skip

    nvlink, rack = free_gpus(nodes, EIGHT).by_domain

    assert (nvlink.kind, nvlink.domains, nvlink.unknown, nvlink.best) == ("NVLink domain", 2, 1, "b")
    assert nvlink.largest == {1: 16, 2: 16, 4: 16, 8: 16}
    assert (rack.largest, rack.domains, rack.unknown) == ({1: 31, 2: 30, 4: 28, 8: 24}, 2, 0)
    assert free_gpus([in_domains(8, "", "")], EIGHT).by_domain == [], "unknown is not one domain"


amounts = st.none() | st.integers(-100, 1000)
nodes = st.builds(
    NodeWithRoom, st.integers(0, 16), st.dictionaries(st.sampled_from([SMALL, LARGE]), st.floats(0, 8)),
    st.booleans(), st.booleans(), st.booleans(), amounts, amounts,
)  # fmt: skip
usuals = st.builds(
    UsualPod, st.integers(1, 16), st.integers(0, 200), st.integers(0, 200), st.frozensets(st.sampled_from([SMALL]))
)


@given(st.lists(nodes), usuals)
def test_the_parts_are_the_free_gpus(all_nodes, usual):
    found = free_gpus(all_nodes, usual)

    assert found.usable + sum(found.stranded.values()) == pytest.approx(found.free)
    assert all(gpus > 0 for gpus in found.stranded.values())
    assert all(size * number <= found.free + 1e-6 for size, number in found.pods.items())
