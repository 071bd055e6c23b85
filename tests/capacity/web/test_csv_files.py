"""The CSV files of the cards: the rows of the page, and no file of what others may not see."""

import csv
from io import StringIO

import pytest

from tests import make
from tests.make import NOON
from tests.pages import visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]


@pytest.fixture
def pool():
    return make.a_pool(make.a_cluster("east"), "h200")


@pytest.fixture
def viewer():
    return visiting(make.a_user("bob", role="viewer"))


def rows(viewer, address: str) -> list[dict[str, str]]:
    return list(csv.DictReader(StringIO(viewer.get(address).content.decode())))


def test_free_gpus_have_their_parts(viewer, pool):
    make.a_node(pool.cluster, "n1", pool=pool, gpus=8)
    make.a_node(pool.cluster, "n2", pool=pool, gpus=8, is_unschedulable=True)

    for address in (f"/pools/{pool.pk}/free-gpus-now.csv", f"/clusters/{pool.cluster_id}/free-gpus-now.csv"):
        found = rows(viewer, address)
        assert [(row["part"], float(row["gpus"])) for row in found] == [("usable", 8), ("cordon", 8)]
        assert {(row["cluster"], row["at"]) for row in found} == {("east", NOON.isoformat())}


def test_a_waiting_pod_has_the_nodes_left_after_each_requirement(viewer, pool):
    node = make.a_node(pool.cluster, "n1", pool=pool, gpus=8, allocatable={"nvidia.com/gpu": 8})
    pod = make.a_pending_pod(pool.cluster, "waits", gpus=16, created_at=NOON)

    found = rows(viewer, f"/pods/{pod.pk}/funnel.csv")

    assert found[0]["nodes_left"] == "1"
    assert found[-1]["nodes_left"] == "0"
    assert viewer.get(f"/pods/{make.a_pod(node).pk}/funnel.csv").status_code == 404, "it does not wait"


@pytest.mark.parametrize("name", ["free-gpus-now", "mig-demand", "placement", "defragmentation", "tenants"])
def test_each_file_of_a_pool_is_for_those_who_see_it_and_names_what_was_not_read(viewer, pool, name):
    unread = make.a_pool(make.a_cluster("west", seen_at=None))

    assert viewer.get(f"/pools/{pool.pk}/{name}.csv").status_code == 200
    assert visiting(make.a_user("eve")).get(f"/pools/{pool.pk}/{name}.csv").status_code == 404
    body = viewer.get(f"/pools/{unread.pk}/{name}.csv").content.decode()
    assert "Unknown: the cluster was not read." in body
