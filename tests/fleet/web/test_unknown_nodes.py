"""A cluster whose nodes nobody knows counts nowhere, and is named where sums stand."""

import pytest

from fleet.models import Bookmark
from tests import make
from tests.callers import calling
from tests.pages import page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]


def forbidden(cluster) -> None:
    Bookmark.objects.filter(cluster=cluster, kind="nodes").update(state="forbidden")


def never_listed(cluster) -> None:
    Bookmark.objects.filter(cluster=cluster, kind="nodes").update(listed_at=None, state="listing")


@pytest.fixture(params=[forbidden, never_listed])
def root(request):
    known, unknown = make.a_cluster("known"), make.a_cluster("dark")
    for cluster in (known, unknown):
        make.a_node(cluster, pool=make.a_pool(cluster, f"in-{cluster.name}"))
        make.a_node(cluster)
    request.param(unknown)
    make.counted()
    return make.a_user(role="admin")


def test_it_is_in_no_sum_and_named_beside_them(root):
    fleet, segments = page(visiting(root), "/").text, page(visiting(root), "/segments").text

    assert "2 GPU nodes" in fleet
    assert "16 GPUs" in fleet
    unseen = "Not counted: dark"
    assert unseen in fleet or "dark loading: nodes (1 h): not counted yet" in fleet
    assert "2 GPU nodes" in segments
    assert "Not counted, because the nodes are unknown: dark" in segments


def test_rest_and_metrics_say_the_same(root):
    caller = calling(root)
    rows = {each["name"]: each["counts"]["physical_gpus"] for each in caller.get("/api/v1/clusters").json()["results"]}
    told = [
        line for line in caller.get("/metrics").content.decode().splitlines() if line.startswith("quarterdeck_gpus")
    ]

    assert rows == {"known": 16, "dark": None}
    said = caller.get("/api/v1/segments").json()
    assert said["gpus"] == 16
    assert [each["name"] for each in said["unseen"]] == ["dark"]
    assert [line for line in told if 'cluster="dark"' in line] == []
    assert sum(float(line.split()[-1]) for line in told) == 16


def test_the_page_of_its_cluster_has_no_numbers_of_it(root):
    dark = Bookmark.objects.get(cluster__name="dark", kind="nodes").cluster

    seen = page(visiting(root), f"/clusters/{dark.pk}").text

    assert "no node data" in seen
    assert "8 GPUs" not in seen
