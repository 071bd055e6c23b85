"""A healthy twin: which node it is and why, why there is none, and what differs."""

from datetime import timedelta

import pytest
from django.urls import reverse

from health.inbox.twins import twin_of
from health.sources import frames
from tests import make
from tests.callers import calling
from tests.make import NOON
from tests.pages import page, visiting

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster(redis):
    return make.a_cluster("prod")


@pytest.fixture
def pool(cluster):
    return make.a_pool(cluster, "h100")


@pytest.fixture
def root():
    return make.a_user("root", role="admin")


def like(cluster, name: str, pool=None, **given):
    frames.forget(cluster.pk)
    row = {"gpus": 8, "gpu_product": "H100", "driver_version": "580.1", "kernel": "6.8", "is_gpu_node": True} | given
    return make.a_node(cluster, name, pool=pool, **row)


def test_is_healthy_and_of_the_same_product_pool_and_driver(cluster, pool, root):
    here = like(cluster, "gpu-1", pool)
    like(cluster, "gpu-2", pool, gpu_product="A100")
    like(cluster, "gpu-3", pool, driver_version="570.1")
    like(cluster, "gpu-4")
    like(cluster, "gpu-5", pool, is_unschedulable=True)
    like(cluster, "gpu-6", pool, unresolved=1)
    like(make.a_cluster("other"), "gpu-7")
    twin = like(cluster, "gpu-8", pool)

    found = twin_of(here, root, now=NOON)

    assert found.node == twin
    assert found.because == (
        "It is healthy, of pool h100, has GPUs H100 and runs driver 580.1; it is the only such node."
    )


def test_the_same_kernel_goes_first_then_the_load_then_the_name(cluster, pool, root):
    here = like(cluster, "gpu-5", pool, gpu_allocated=8)
    idle = like(cluster, "gpu-1", pool, gpu_allocated=0)
    like(cluster, "gpu-2", pool, gpu_allocated=8, kernel="6.9")
    busy = like(cluster, "gpu-4", pool, gpu_allocated=8)
    first = like(cluster, "gpu-3", pool, gpu_allocated=8)

    assert twin_of(here, root, now=NOON).node == first
    assert "of 4 such nodes it is the one with the same kernel" in twin_of(here, root, now=NOON).because
    first.delete()
    assert twin_of(here, root, now=NOON).node == busy
    busy.delete()
    assert twin_of(here, root, now=NOON).node == idle


def test_says_what_lacks_where_there_is_none(cluster, pool, root):
    here = like(cluster, "gpu-1", pool)

    def because() -> str:
        found = twin_of(here, root, now=NOON)
        assert found.node is None
        return found.because

    assert "no other node of pool h100, of those that you may see, has GPUs H100." in because()
    other = like(cluster, "gpu-2", pool, driver_version="570.1", layout="time-slicing:4", is_ready=False)
    assert "none of the 1 node with them in pool h100 runs driver 580.1." in because()
    type(other).objects.update(driver_version="580.1")
    assert "none of the 1 node with its driver has GPUs cut and shared so." in because()
    type(other).objects.update(layout="")
    assert "none of the 1 node like it is healthy now." in because()
    type(here).objects.update(gpu_product="")
    here.refresh_from_db()
    assert "nothing says of which product" in because()


def test_is_never_a_node_that_one_may_not_see(cluster, pool):
    seen = make.a_pool(cluster, "seen")
    here = like(cluster, "gpu-1", pool)
    here.pools.add(seen)
    like(cluster, "gpu-2", pool)
    pat = make.a_user("pat", role="")
    make.give(pat, "viewer", on=seen)

    assert twin_of(here, pat, now=NOON).node is None


def test_says_what_differs_and_what_does_not(cluster, pool, root):
    here = like(cluster, "gpu-1", pool, kernel="6.8", labels={"nvidia.com/gpu.machine": "A", "app": "x"})
    like(cluster, "gpu-2", pool, kernel="6.9", labels={"nvidia.com/gpu.machine": "B", "app": "y"})

    found = twin_of(here, root, now=NOON)

    assert [(one.title, one.here, one.there) for one in found.properties] == [
        ("Kernel", "6.8", "6.9"),
        ("nvidia.com/gpu.machine", "A", "B"),
    ]
    assert "GPUs held" in found.alike
    assert {one.title: one.here for one in found.measured}["Hottest GPU now"] == "no source"


def test_page_and_rest_say_the_same(cluster, pool, root):
    here = like(cluster, "gpu-1", pool)
    twin = like(cluster, "gpu-2", pool)

    shown = page(visiting(root), reverse("node-twin", args=[here.pk]))
    said = calling(root).get(f"/api/v1/nodes/{here.pk}/twin").json()

    assert said["node"]["id"] == twin.pk
    assert said["because"] in shown.text
    assert f"/nodes/{twin.pk}" in shown.links
    assert calling(make.a_user("eve")).get(f"/api/v1/nodes/{here.pk}/twin").status_code == 404


def test_costs_no_more_with_more_nodes(cluster, pool, root, django_assert_max_num_queries):
    here = like(cluster, "gpu-1", pool)
    for number in range(2, 12):
        like(cluster, f"gpu-{number}", pool, created_at=NOON - timedelta(days=9))

    with django_assert_max_num_queries(24):
        twin_of(here, root, now=NOON)
