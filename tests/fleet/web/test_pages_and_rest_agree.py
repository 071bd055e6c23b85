"""What a page and a REST answer say of the same cluster or pool is the same, also where nobody knows it."""

from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.models import Bookmark
from fleet.web.summary import cluster_lines
from people.models import User
from tests import make
from tests.fleet.kinds_of_nodes import KINDS, a_node_of
from tests.fleet.reading import read_as
from tests.make import NOON
from tests.pages import page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]
NEVER = {"listed_at": None, "last_seen_at": None}
SEEN = {
    "live": {},
    "stale": {"last_seen_at": NOON - timedelta(hours=1)},
    "first list": {"state": "listing"} | NEVER,
    "forbidden": {"state": "forbidden"} | NEVER,
    "forbidden by now": {"state": "forbidden"},
}
COUNTS = ("nodes", "gpu_nodes", "ready", "not_ready", "readiness_unknown", "unschedulable", "held", "physical_gpus")


@pytest.fixture
def viewer():
    return visiting(make.a_user(role="viewer"))


@pytest.fixture(params=[(kind, how) for kind in ("nodes", "pods") for how in SEEN], ids=" ".join)
def cluster(request):
    """Of every kind of node, one of whose two kinds was seen so."""
    kind, how = request.param
    cluster = make.a_cluster("north")
    pool = make.a_pool(cluster, "training", price_per_gpu_hour="2.5")
    for each in KINDS:
        a_node_of(cluster, each).pools.add(pool)
    Bookmark.objects.filter(cluster=cluster, kind=kind).update(**SEEN[how])
    return make.counted(cluster)


def test_clusters_and_pools_are_counted_alike(viewer, cluster):
    (as_cluster,) = cluster_lines(User.objects.get(), now=timezone.now())
    (as_pool,) = read_as(User.objects.get()).pools

    for what, sums in (("clusters", as_cluster.tally), ("pools", as_pool.tally)):
        (row,) = viewer.get(f"/api/v1/{what}").json()["results"]
        assert {name: row["counts"][name] for name in COUNTS} == {name: getattr(sums, name) for name in COUNTS}
        for kind in ("gpus", "slices", "shares"):
            for name in ("expected", "allocatable", "allocated", "missing"):
                assert row["counts"][f"{kind}_{name}"] == getattr(getattr(sums, kind), name), (what, kind, name)


@pytest.mark.parametrize("how", ["never watched", *(each for each in SEEN if each not in ("live", "stale"))])
def test_what_was_never_listed_has_no_numbers_on_any_page(viewer, how):
    cluster = make.a_cluster("north", seen_at=None if how == "never watched" else NOON)
    Bookmark.objects.filter(cluster=cluster, kind="nodes").update(**SEEN.get(how, {}))
    pool = make.a_pool(cluster, "training", price_per_gpu_hour="2.5")

    (row,) = viewer.get("/api/v1/pools").json()["results"]
    table, alone, fleet = (page(viewer, path).text for path in ("/pools", f"/pools/{pool.pk}", "/"))

    assert {row["counts"][name] for name in COUNTS} == {None}
    assert "– GPU nodes" in alone
    assert "No GPU node is in this pool" not in alone
    assert "for the whole pool" not in alone
    assert "– – – – –" in table
    assert "no node data" in fleet


def test_a_pool_that_picks_none_of_what_was_listed_has_none(viewer):
    pool = make.a_pool(make.a_cluster("north"), "training")

    assert "0 GPU nodes" in page(viewer, f"/pools/{pool.pk}").text
    assert "No GPU node is in this pool" in page(viewer, f"/pools/{pool.pk}").text
    (row,) = viewer.get("/api/v1/pools").json()["results"]
    assert (row["counts"]["gpu_nodes"], row["counts"]["physical_gpus"]) == (0, 0)


def test_the_page_of_a_node_and_rest_tell_of_the_same_jobs_that_kubernetes_does_not_know(viewer):
    node = make.a_node(make.a_cluster("north"), gpus=2)
    make.a_reading(node, make.a_device_told(0), make.a_device_told(1) | {"jobs": ["4711"]})

    (sentence,) = viewer.get(f"/api/v1/nodes/{node.pk}").json()["disagreements"]

    assert sentence.startswith("Job 4711 of a batch system runs on GPU 1")
    assert sentence in page(viewer, f"/nodes/{node.pk}").text
