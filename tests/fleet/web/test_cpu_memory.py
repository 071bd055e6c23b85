"""CPU and memory on the pages of a node and of a cluster."""

import pytest

from fleet.web.cpu_memory import spelled
from tests import make
from tests.pages import page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]
GI = 2**30
HAS = {"cpu_allocatable_m": 127_000, "memory_allocatable_bytes": 2100 * GI}
TAKEN = {
    "cpu_tenants_m": 96_000,
    "cpu_operands_m": 500,
    "cpu_others_m": 250,
    "memory_tenants_bytes": 1024 * GI,
    "memory_operands_bytes": GI // 2,
    "memory_others_bytes": 2 * GI,
}


@pytest.fixture
def viewer():
    return visiting(make.a_user(role="viewer"))


def test_a_node_says_who_requests_how_much_of_it(viewer):
    node = make.a_node(make.a_cluster(), **HAS, **TAKEN)

    seen = page(viewer, f"/nodes/{node.pk}").text

    assert "CPU 127 cores 96.8 cores 76 % 96 cores 0.5 cores 0.2 cores 30.2 cores" in seen
    assert "Memory 2,100 GiB 1,026.5 GiB 49 % 1,024 GiB 0.5 GiB 2 GiB 1,073.5 GiB" in seen


def test_a_node_that_does_not_say_what_it_has_is_unknown_not_full(viewer):
    node = make.a_node(make.a_cluster(), **TAKEN)

    seen = page(viewer, f"/nodes/{node.pk}").text

    assert "CPU – 96.8 cores 96 cores 0.5 cores 0.2 cores –" in seen
    assert "The node reports no allocatable CPU and memory." in seen


def test_what_pods_request_is_unknown_where_they_were_never_read(viewer):
    cluster = make.a_cluster(seen_at=None)
    make.a_bookmark(cluster, "nodes")
    node = make.a_node(cluster, **HAS)

    on_node, of_cluster = page(viewer, f"/nodes/{node.pk}").text, page(viewer, f"/clusters/{cluster.pk}").text

    assert "CPU 127 cores – – – – –" in on_node
    assert "CPU, GPU nodes 127 cores – – – – –" in of_cluster
    assert "The requests of pods are unknown, because pods were never read here" in on_node


def test_a_node_with_more_requested_than_it_has_says_so(viewer):
    node = make.a_node(make.a_cluster(), cpu_allocatable_m=1000, cpu_others_m=3000)

    assert "-2 cores" in page(viewer, f"/nodes/{node.pk}").text


def test_a_cluster_sums_up_nodes_with_gpus_and_others_apart(viewer):
    cluster = make.a_cluster()
    for number in range(2):
        make.a_node(cluster, **HAS, **TAKEN)
        make.a_node(cluster, gpus=0, is_gpu_node=False, cpu_others_m=600 * number, **HAS)

    seen = page(viewer, f"/clusters/{cluster.pk}").text

    assert "CPU, GPU nodes 254 cores 193.5 cores 76 % 192 cores 1 cores 0.5 cores 60.5 cores" in seen
    assert "CPU, other nodes 254 cores 0.6 cores under 1 % 0 cores 0 cores 0.6 cores 253.4 cores" in seen


def test_a_cluster_says_of_how_many_nodes_nothing_is_known(viewer):
    cluster = make.a_cluster()
    make.a_node(cluster, **HAS)
    make.a_node(cluster)

    assert "1 of 2 GPU nodes reports no allocatable CPU or memory" in page(viewer, f"/clusters/{cluster.pk}").text


@pytest.mark.parametrize(
    ("number", "words"),
    [(0, "0"), (0.02, "under 0.1"), (0.5, "0.5"), (3.0, "3"), (1920.04, "1,920"), (20156.44, "20,156"), (-2.0, "-2")],
)
def test_a_little_is_never_shown_as_nothing(number, words):
    assert spelled(number) == words
