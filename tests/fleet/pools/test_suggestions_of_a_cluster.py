"""Suggestions for a cluster whose nodes were not all heard of: asked of the cluster itself, by product only."""

import pytest
from django.core.management import CommandError, call_command

from fleet.models import Pool
from tests import make
from tests.api_server import ApiServer

pytestmark = pytest.mark.django_db
PRODUCT, ZONE = "nvidia.com/gpu.product", "topology.kubernetes.io/zone"


@pytest.fixture
def cluster(api: ApiServer):
    """Three nodes of one product in two zones; one of them was heard of."""
    for name, zone in (("a", "1"), ("b", "1"), ("c", "2")):
        labels = {PRODUCT: "NVIDIA-H200", ZONE: zone}
        api.create("/api/v1/nodes", {"metadata": {"name": f"pools-{name}", "labels": labels}})
    cluster = make.a_cluster("north", kubeconfig=api.kubeconfig, context=api.context)
    make.a_node(cluster, "pools-a", labels={PRODUCT: "NVIDIA-H200", ZONE: "1"}, zone="1")
    yield cluster
    for name in "abc":
        api.delete(f"/api/v1/nodes/pools-{name}")


def test_half_a_list_is_not_what_is_there(cluster, capsys):
    cluster.bookmarks.filter(kind="nodes").update(listed_at=None)

    call_command("suggest_pools", "north", "--create")

    assert Pool.objects.get().selector == f"{PRODUCT}=NVIDIA-H200"
    assert "3 nodes with NVIDIA-H200" in capsys.readouterr().out


def test_one_pool_a_product_is_the_same_whether_its_nodes_were_heard_of_or_not(cluster):
    make.a_node(cluster, "pools-c", labels={PRODUCT: "NVIDIA-H200", ZONE: "2"}, zone="2")

    call_command("suggest_pools", "north", "--create", "--by-product")

    assert Pool.objects.get().selector == f"{PRODUCT}=NVIDIA-H200"
    assert Pool.objects.get().nodes.count() == 2


def test_what_is_in_pools_already_is_not_put_in_another(cluster, capsys):
    make.a_node(cluster, "pools-b", labels={PRODUCT: "NVIDIA-H200", ZONE: "1"}, zone="1")
    make.a_node(cluster, "pools-c", labels={PRODUCT: "NVIDIA-H200", ZONE: "2"}, zone="2")
    for zone in ("1", "2"):
        pool = make.a_pool(cluster, f"zone-{zone}", selector=f"{ZONE}={zone}")
        pool.nodes.set(cluster.nodes.filter(zone=zone))

    call_command("suggest_pools", "north", "--create", "--by-product")

    assert set(Pool.objects.values_list("name", flat=True)) == {"zone-1", "zone-2"}
    assert "All these nodes are in zone-1, zone-2." in capsys.readouterr().out


def test_a_cluster_that_cannot_be_asked_says_why():
    make.a_cluster("south", seen_at=None, kubeconfig="/no/such/file")

    with pytest.raises(CommandError, match="/no/such/file"):
        call_command("suggest_pools", "south")
