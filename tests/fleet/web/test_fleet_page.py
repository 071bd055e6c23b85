from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests import make
from tests.fleet.kinds_of_nodes import KINDS, a_node_of
from tests.fleet.map_rasters import read_map
from tests.make import NOON
from tests.pages import HOSTILE, page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]


@pytest.fixture
def viewer():
    return visiting(make.a_user(role="viewer"))


def test_shows_each_node_with_its_state_and_driver(viewer):
    cluster = make.a_cluster("east")
    make.a_node(cluster, "gpu-1", pool=make.a_pool(cluster, "h200"), driver_version="580.95.05")

    seen = page(viewer, "/")

    assert "gpu-1 east ready" in seen.text.replace("● ", "")
    assert "580.95.05" in seen.text


def test_sums_allocatable_and_missing_gpus_apart(viewer):
    cluster = make.a_cluster()
    make.a_node(cluster, gpu_allocatable=6, gpu_allocated=5)
    make.a_node(cluster, gpu_allocated=8)

    seen = page(viewer, "/parts/fleet/overview")

    assert "16 GPUs" in seen.text
    assert "13 allocated" in seen.text
    assert "1 free" in seen.text
    assert "2 missing" in seen.text


def test_free_gpus_of_a_cordoned_node_are_not_called_free(viewer):
    make.a_node(make.a_cluster(), gpu_allocated=2, is_unschedulable=True)

    seen = page(viewer, "/parts/fleet/overview")

    assert "0 free" in seen.text
    assert "6 free, not usable" in seen.text


def test_zero_and_not_known_look_different(viewer):
    cluster = make.a_cluster()
    make.a_node(cluster, "silent", gpu_allocatable=None, gpu_capacity=None, gpu_expected=None, driver_version="")

    response = viewer.get("/parts/fleet/nodes").content.decode()

    assert 'class="nodata"' in response
    assert page(viewer, "/parts/fleet/overview").text.count("1 node with GPUs not counted") == 1


def test_a_cluster_that_is_not_seen_is_stale_and_its_nodes_are_not_called_down(viewer):
    cluster = make.a_cluster("east", seen_at=NOON - timedelta(minutes=7))
    make.a_node(cluster, "gpu-1")

    seen = page(viewer, "/")

    assert "Not observed since 11:53:00 UTC" in seen.text
    assert "not ready" not in page(viewer, "/parts/fleet/nodes").text
    assert "1 of 1 cluster not seen" in seen.text


def test_pools_name_the_drivers_that_disagree(viewer):
    cluster = make.a_cluster()
    pool = make.a_pool(cluster, "h200")
    make.a_node(cluster, pool=pool, driver_version="570.172.08")
    make.a_node(cluster, pool=pool, driver_version="580.95.05")

    seen = page(viewer, "/parts/fleet/overview")

    assert "570.172.08 ×1" in seen.text
    assert "580.95.05 ×1" in seen.text
    assert "differ" in seen.text


def test_a_driver_whose_label_is_gone_is_not_among_those_that_run(viewer):
    cluster = make.a_cluster()
    pool = make.a_pool(cluster, "h200")
    make.a_node(cluster, pool=pool, driver_version="570.172.08", driver_unknown_since=NOON)
    make.a_node(cluster, pool=pool, driver_version="580.95.05")
    make.counted()

    home, own = page(viewer, "/parts/fleet/overview").text, page(viewer, f"/pools/{pool.pk}").text

    assert "no label ×1 580.95.05 ×1" in home
    assert "differ" not in home
    assert "570.172.08" not in home + page(viewer, "/pools").text + own
    assert "no label" in own


def test_a_node_in_no_pool_and_one_in_two_are_pointed_at(viewer):
    cluster = make.a_cluster()
    one, other = make.a_pool(cluster), make.a_pool(cluster)
    make.a_node(cluster, pool=one).pools.add(other)
    make.a_node(cluster)

    seen = page(viewer, "/parts/fleet/overview")

    assert "1 GPU node in no pool" in seen.text
    assert "1 GPU node in more than one" in seen.text


def test_without_a_cluster_it_says_how_to_add_one(viewer):
    seen = page(viewer, "/")

    assert "bin/manage add_cluster" in seen.text


def test_a_stranger_sees_that_there_is_no_role_and_nothing_else():
    make.a_node(make.a_cluster("east"), "gpu-1")

    seen = page(visiting(make.a_user()), "/")

    assert "You have no role yet" in seen.text
    assert "gpu-1" not in seen.text
    assert "east" not in seen.text


def test_who_sees_one_pool_sees_its_nodes_only():
    cluster = make.a_cluster()
    mine, theirs = make.a_pool(cluster, "mine"), make.a_pool(cluster, "theirs")
    make.a_node(cluster, "gpu-mine", pool=mine)
    make.a_node(cluster, "gpu-theirs", pool=theirs)
    client = visiting(make.a_user(role="viewer", on=mine))

    seen = page(client, "/")
    drawn = read_map(client)

    assert "gpu-mine" in seen.text
    assert "theirs" not in seen.text
    assert [node.name for node in drawn] == ["gpu-mine"]
    assert "theirs" not in client.get("/parts/fleet/map/index").content.decode()


def test_hostile_names_are_shown_and_not_run(viewer):
    cluster = make.a_cluster("east", server_version=HOSTILE[:60])
    make.a_bookmark(cluster, "daemonsets.apps", state="failing", message=HOSTILE)
    words = {"not_ready_reason": HOSTILE, "kernel": HOSTILE}
    make.a_node(cluster, HOSTILE, uid="hostile", pool=make.a_pool(cluster), is_ready=False, **words)

    seen = page(viewer, f"/?q={HOSTILE[:8]}")

    assert HOSTILE in seen.text.replace("  ", " ")


@pytest.mark.parametrize(
    "path", ["/", "/parts/fleet/nodes", "/parts/fleet/overview", "/parts/fleet/map", "/parts/fleet/map/index"]
)
def test_the_number_of_queries_does_not_grow_with_the_fleet(viewer, queries_of, path):
    cluster = make.a_cluster()
    pool = make.a_pool(cluster)
    for _ in range(5):
        make.a_node(cluster, pool=pool, gpus=1)
    with_few = queries_of(viewer, path)

    for _ in range(95):
        make.a_node(cluster, pool=pool, gpus=1)

    assert queries_of(viewer, path) == with_few
    assert with_few <= 21  # four of them for the banner: nobody watches this cluster


def test_a_row_asks_nothing_whatever_is_said_of_its_node(viewer, queries_of):
    cluster = make.a_cluster()
    make.a_node(cluster, pool=make.a_pool(cluster), gpus=1)
    with_one = queries_of(viewer, "/parts/fleet/nodes")

    for kind in KINDS:
        a_node_of(cluster, kind)
    make.a_node(cluster, gpus=8, gpu_allocatable=7, unhealthy_gpus=[{"gpu": "GPU 3", "index": 3, "reason": "Xid 79"}])
    make.a_node(cluster, gpus=8, expected={"nvidia.com/gpu": 8}, layout="x", slices_expected=2)
    make.a_node(cluster, gpus=8, mig_config="all-1g.5gb", mig_config_state="pending")
    make.a_node(cluster, gpus=8, is_ready=None)

    assert queries_of(viewer, "/parts/fleet/nodes") == with_one


@pytest.mark.parametrize("path", ["/", "/pools", "/segments", "/findings"])
def test_a_page_reads_its_clusters_and_what_is_counted_of_them_once(viewer, path):
    cluster = make.a_cluster()
    make.a_node(cluster, pool=make.a_pool(cluster), gpus=1)

    with CaptureQueriesContext(connection) as queries:
        viewer.get(path)

    begins = ('SELECT "fleet_nodesums".', 'SELECT "fleet_bookmark".')
    assert [sum(each["sql"].startswith(begin) for each in queries) for begin in begins] == [1, 1]


def test_a_part_is_not_sent_again_while_nothing_changed(viewer):
    make.a_node(make.a_cluster(), "gpu-1")
    first = viewer.get("/parts/fleet/nodes")

    again = viewer.get("/parts/fleet/nodes", headers={"If-None-Match": first["ETag"]})

    assert again.status_code == 304
    assert not again.content


def test_a_part_is_sent_again_after_a_change_and_not_reason_time_went_by(viewer):
    import time_machine

    cluster = make.a_cluster()
    node = make.a_node(cluster, "gpu-1")
    first = viewer.get("/parts/fleet/nodes")["ETag"]

    with time_machine.travel(NOON + timedelta(seconds=20), tick=False):
        later = viewer.get("/parts/fleet/nodes")["ETag"]
    type(node).objects.filter(pk=node.pk).update(driver_version="580.95.05")
    changed = viewer.get("/parts/fleet/nodes")["ETag"]

    assert later == first
    assert changed != first


def test_nobody_is_sent_to_sign_in(client):
    response = client.get("/")

    assert response.status_code == 302
    assert response["Location"].startswith("/sign-in")


def test_the_page_listens_to_what_its_parts_follow(viewer):
    make.a_cluster()

    response = viewer.get("/").content.decode()

    assert 'data-topics="fleet,telemetry,plans"' in response


def test_slices_and_shares_are_named_beside_gpus_and_never_added_to_them(viewer):
    cluster = make.a_cluster()
    whole = {"gpu_capacity": 4, "gpu_allocatable": 4, "gpu_expected": 4, "gpu_allocated": 2}
    parts = {"slices_expected": 28, "slices_allocatable": 27, "slices_allocated": 14}
    node = make.a_node(cluster, "half-cut", gpus=0, **whole, **parts)

    row = viewer.get("/parts/fleet/nodes").content.decode().partition(f'id="node-{node.pk}"')[2]

    assert "2 of 4" in row
    assert '14 of 27 <span class="faint">slices</span>' in row


def test_the_pools_are_fetched_again_where_there_are_none(viewer):
    make.a_cluster("north")

    assert "bin/manage suggest_pools north" in page(viewer, "/parts/fleet/overview").text


def test_slices_and_shares_are_counted_beside_gpus_and_never_among_them(viewer):
    cluster = make.a_cluster()
    nothing = {"gpu_capacity": None, "gpu_allocatable": None, "gpu_expected": None}
    make.a_node(cluster)
    make.a_node(
        cluster, gpus=0, physical_mig=2, slices_expected=14, slices_allocatable=13, slices_allocated=3, **nothing
    )
    make.a_node(
        cluster, gpus=0, physical_mps=4, shares_expected=32, shares_allocatable=32, shares_allocated=5, **nothing
    )

    text = page(viewer, "/parts/fleet/overview").text

    assert "14 GPUs 8 whole · 2 MIG · 4 MPS" in text
    assert "0 of 8 whole GPUs allocated" in text
    assert "3 of 14 slices allocated 1 missing" in text
    assert "5 of 32 shares allocated" in text
    assert "not counted" not in text


def test_a_hundred_clusters_are_six_rows_the_bad_ones_first_and_the_rest_folded(viewer):
    for number in range(100):
        make.a_cluster(f"east-{number:03}", seen_at=None if number == 70 else NOON - timedelta(hours=number == 90))

    seen = page(viewer, "/parts/fleet/clusters").text

    assert "2 clusters of 100 need attention" in seen
    assert "+94 more, all of them seen" in seen
    before, _, after = seen.partition("+94 more")
    assert "east-070" in before
    assert "east-090" in before
    assert "east-099" in after
    assert before.count("east-") == 6
