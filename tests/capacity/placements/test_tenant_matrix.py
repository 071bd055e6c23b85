"""The matrix of a pool's nodes and GPUs by tenant: picture, table, file and REST."""

import csv
from io import StringIO

import pytest

from capacity.placements import tenant_matrix as matrix_module
from capacity.placements.tenant_matrix import every_node
from fleet.models import Gpu, Node
from tests import make
from tests.callers import calling
from tests.make import NOON
from tests.pages import HOSTILE, page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]


@pytest.fixture
def pool():
    return make.a_pool(make.a_cluster("east"), "h200")


@pytest.fixture
def bob():
    return make.a_user("bob", role="viewer")


def a_node(pool, name, *, gpus=2, **given):
    node = make.a_node(pool.cluster, name, gpus=gpus, pool=pool, **given)
    for gpu in Gpu.objects.filter(node=node):
        Gpu.objects.filter(pk=gpu.pk).update(uuid=f"GPU-{name}-{gpu.index}")
    return node


def states(found) -> dict[str, list[tuple]]:
    return {node["name"]: [(gpu["state"], gpu["namespaces"]) for gpu in node["gpus"]] for node in found["nodes"]}


def test_each_gpu_has_its_tenant_or_is_free_closed_or_unknown(bob, pool):
    busy, odd = a_node(pool, "busy"), a_node(pool, "odd")
    a_node(pool, "closed", is_unschedulable=True)
    make.a_pod(busy, "x", namespace="ml", devices={"nvidia.com/gpu": ["GPU-busy-1"]})
    make.a_pod(odd, "y", namespace="web")

    found = calling(bob).get(f"/api/v1/pools/{pool.pk}/tenants").json()["tenants"]

    assert states(found) == {
        "busy": [("free", []), ("held", ["ml"])],
        "closed": [("closed", []), ("closed", [])],
        "odd": [("unknown", []), ("unknown", [])],
    }
    assert found["nodes"][2]["unplaced"] == ["web"]
    text = page(visiting(bob), f"/parts/pools/{pool.pk}/tenants").text
    assert "busy, GPU 1: ml" in text
    assert "busy ml 1 1 0 0" in text
    assert "odd none somewhere here: web 0 0 2" in text
    rows = list(csv.DictReader(StringIO(visiting(bob).get(f"/pools/{pool.pk}/tenants.csv").content.decode())))
    assert [(row["node"], row["gpu"], row["namespaces"], row["pods"]) for row in rows][:2] == [
        ("busy", "0", "", ""), ("busy", "1", "ml", "ml/x"),
    ]  # fmt: skip


def test_a_shared_gpu_has_a_part_for_each_tenant_and_hostile_names_are_text(bob, pool):
    node = a_node(pool, "shared", gpus=1)
    for namespace in ("ml", HOSTILE[:63]):
        make.a_pod(node, "x", namespace=namespace, uid=namespace[:8], devices={"nvidia.com/gpu": ["GPU-shared-0"]})

    seen = page(visiting(bob), f"/parts/pools/{pool.pk}/tenants").text

    assert "shared, GPU 0: ml" in seen
    assert f"shared, GPU 0: {HOSTILE[:63]}" in seen


def test_many_nodes_are_cut_on_the_page_and_go_on_in_rest_and_in_the_file(bob, pool, monkeypatch):
    monkeypatch.setattr(matrix_module, "NODES_AT_MOST", 2)
    for number in range(5):
        a_node(pool, f"n{number}", gpus=1)
    address = f"/api/v1/pools/{pool.pk}/tenants"

    assert "the first 2 of 5 nodes" in page(visiting(bob), f"/parts/pools/{pool.pk}/tenants").text
    assert list(states(calling(bob).get(f"{address}?after=n3").json()["tenants"])) == ["n4"]
    assert [node.name for node in every_node(pool, bob, now=NOON)] == [f"n{number}" for number in range(5)]


def test_what_was_never_read_is_unknown_and_others_see_nothing(bob):
    pool = make.a_pool(make.a_cluster("west", seen_at=None))
    make.a_node(pool.cluster, "n", pool=pool)

    assert "Unknown." in page(visiting(bob), f"/parts/pools/{pool.pk}/tenants").text
    assert calling(bob).get(f"/api/v1/pools/{pool.pk}/tenants").json() == {"tenants": None}
    assert calling(make.a_user("eve")).get(f"/api/v1/pools/{pool.pk}/tenants").status_code == 404
    assert Node.objects.count() == 1
