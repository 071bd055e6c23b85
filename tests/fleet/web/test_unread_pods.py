"""Where a cluster's pods were never read, nobody knows what they have: no page and no answer says “nothing”."""

import pytest

from fleet.models import Bookmark, Node
from fleet.web.fleet_page import _bar
from people.models import User
from tests import make
from tests.fleet.map_rasters import read_map
from tests.fleet.reading import read_as
from tests.pages import page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]
UNREAD = {
    "no bookmark": None,
    "forbidden": {"state": "forbidden", "listed_at": None, "last_seen_at": None},
    "forbidden by now": {"state": "forbidden"},
    "failing from the start": {"state": "failing", "listed_at": None, "last_seen_at": None},
    "first list": {"state": "listing", "listed_at": None, "last_seen_at": None},
}


@pytest.fixture(params=UNREAD)
def unread(request):
    cluster = make.a_cluster("north")
    pods = Bookmark.objects.filter(cluster=cluster, kind="pods")
    given = UNREAD[request.param]
    if given is None:
        pods.delete()
    else:
        pods.update(**given)
    return make.a_node(cluster, "gpu-001", pool=make.a_pool(cluster, "training"))


@pytest.fixture
def viewer(db):
    return visiting(make.a_user(role="viewer"))


def test_no_page_says_zero_of_what_nobody_knows(viewer, unread):
    pool = unread.pools.get()
    for address in ("/", f"/clusters/{unread.cluster_id}", "/pools", f"/pools/{pool.pk}", f"/nodes/{unread.pk}"):
        text = page(viewer, address).text
        assert "no data" in text, address
        assert "0 of 8" not in text, address
        assert "0 allocated" not in text, address
        assert "8 free" not in text, address
        assert "No pod but" not in text, address


def test_rest_says_null_and_the_map_that_nobody_knows(viewer, unread):
    for what in ("clusters", "pools"):
        (row,) = viewer.get(f"/api/v1/{what}").json()["results"]
        assert (row["counts"]["gpus_allocated"], row["counts"]["gpus_allocatable"]) == (None, 8), what
    (node,) = read_map(viewer)
    assert (node.cluster["knows_pods"], node.whole[1:]) == (False, (8, 8))


def test_rest_says_of_no_gpu_and_no_resource_of_a_node_that_it_is_free(viewer, unread):
    node = viewer.get(f"/api/v1/nodes/{unread.pk}").json()
    listed = viewer.get("/api/v1/gpus").json()["results"]

    assert [(one["requested"], one["free"]) for one in node["resources"]] == [(None, None)]
    assert [one["allocations"] for one in node["gpus"]] == [one["allocations"] for one in listed] == [None] * 8


def test_a_sum_counts_what_is_known_and_names_the_rest(viewer, unread):
    make.a_node(make.a_cluster("south"), "gpu-002", gpu_allocated=3)

    gpus = read_as(User.objects.get()).whole.gpus
    text = page(viewer, "/").text

    assert (gpus.allocated, gpus.free, gpus.unread, gpus.unusable) == (3, 5, 8, 0)
    assert gpus.expected == gpus.allocated + gpus.free + gpus.unusable + gpus.unread + gpus.missing + gpus.away
    assert "3 allocated 5 free 8 without data of pods" in text
    assert sum(width for _, _, width in _bar(gpus)) == 50


def test_a_gpu_that_is_missing_is_missing_whoever_held_it(unread):
    Node.objects.filter(pk=unread.pk).update(gpu_allocatable=6, gpu_allocated=8)
    make.a_user(role="viewer")

    gpus = read_as(User.objects.get()).whole.gpus

    assert (gpus.allocated, gpus.free, gpus.unread, gpus.missing) == (None, None, 6, 2)


def test_pods_that_were_read_once_are_counted_while_their_cluster_is_stale(viewer):
    cluster = make.a_cluster("north")
    Bookmark.objects.filter(cluster=cluster, kind="pods").update(state="failing")
    make.a_node(cluster, "gpu-001", gpu_allocated=8)

    assert "8 allocated 0 free" in page(viewer, "/").text
