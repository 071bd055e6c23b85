"""The map's raster and index: who sees what, and what they cost."""

import gzip
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fleet.models import Bookmark, Node, Observer
from fleet.states.node import NodeState
from fleet.web.node_map import Indexes, SeenMap
from people.models import User
from tests import make
from tests.fleet.map_rasters import read_map, read_raster
from tests.make import NOON
from tests.pages import visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]
RASTER, INDEX = "/parts/fleet/map", "/parts/fleet/map/index"


@pytest.fixture
def viewer():
    return visiting(make.a_user(role="viewer"))


def test_a_node_is_drawn_with_all_that_it_is_found_by(viewer):
    cluster = make.a_cluster("east")
    pool = make.a_pool(cluster, "h200")
    given = {"zone": "a", "nvlink_domain": "abc.1", "driver_version": "580.95.05", "gpu_product": "NVIDIA-H200"}
    node = make.a_node(cluster, "gpu-1", pool=pool, is_held=True, **given)
    make.a_node(cluster, "gpu-2", is_ready=False)

    first, second = read_map(viewer)

    assert (first.key, first.name, first.code, first.is_held) == (node.pk, "gpu-1", NodeState.HELD, True)
    assert first.by == {"cluster": "east", "pool": "h200", **given}
    assert (second.name, second.by["pool"], second.code) == ("gpu-2", "", NodeState.NOT_READY)


def test_a_driver_whose_label_is_gone_is_none_that_the_map_groups_and_colours_by(viewer):
    make.a_node(make.a_cluster(), driver_version="580.95.05", driver_unknown_since=NOON)

    (node,) = read_map(viewer)

    assert node.by["driver_version"] == ""


def test_a_node_of_two_pools_is_drawn_once_in_the_first(viewer):
    cluster = make.a_cluster("east")
    one, two = make.a_pool(cluster, "one"), make.a_pool(cluster, "two")
    make.a_node(cluster, pool=two).pools.add(one)

    (node,) = read_map(viewer)

    assert node.by["pool"] == "one"


def test_the_raster_says_of_each_cluster_how_far_it_is_and_whether_it_is_seen(viewer):
    live, stale = make.a_cluster("east"), make.a_cluster("west", seen_at=NOON - timedelta(hours=1))
    Observer.objects.filter(cluster=live).update(batch=7)
    make.a_node(live)
    make.a_node(stale)

    head, _ = read_raster(viewer)

    told = {cluster["id"]: cluster for cluster in head["clusters"]}
    assert (told[live.pk]["is_seen"], told[live.pk]["last_seen_at"], told[live.pk]["nodes"]) == (True, None, 1)
    assert told[live.pk]["seq"] == (7 if hasattr(live, "observer") else 0)
    assert (told[stale.pk]["is_seen"], told[stale.pk]["last_seen_at"]) == (False, "2026-11-21T11:00:00+00:00")


@pytest.fixture
def two_pools():
    """Two pools of one cluster and a cluster that somebody sees as a whole."""
    east, west = make.a_cluster("east"), make.a_cluster("west")
    mine, theirs = make.a_pool(east, "mine"), make.a_pool(east, "theirs")
    for number in range(3):
        make.a_node(east, f"theirs-{number}", pool=theirs, zone="secret", gpu_allocated=number)
        make.a_node(east, f"mine-{number}", pool=mine, zone="a", gpu_allocated=number)
    make.a_node(west, "west-1")
    return mine, theirs, west


def test_who_sees_a_pool_and_a_cluster_sees_those_and_nothing_of_the_others(two_pools):
    mine, _, west = two_pools
    everything = read_map(visiting(make.a_user("root", role="admin")))  # made, and kept, before
    user = make.a_user("eve", role="viewer", on=mine)
    make.give(user, "viewer", on=west)
    client = visiting(user)

    seen = read_map(client)

    assert [node.name for node in seen] == ["mine-0", "mine-1", "mine-2", "west-1"]
    assert [node for node in everything if node.name in {each.name for each in seen}] == [
        node for node in everything if not node.name.startswith("theirs")
    ]
    by_name = {node.name: node for node in everything}
    assert all(node.gpus == by_name[node.name].gpus for node in seen)
    for path in (RASTER, INDEX):
        assert b"secret" not in client.get(path).content
        assert b"theirs" not in client.get(path).content


def test_two_who_see_other_nodes_have_other_indexes(two_pools):
    mine, theirs, _ = two_pools
    make.counted()
    users = [make.a_user("a", role="viewer", on=mine), make.a_user("b", role="viewer", on=theirs)]
    users += [make.a_user("c", role="viewer"), make.a_user("d", role="viewer")]

    versions = [SeenMap.by(User.objects.get(pk=user.pk)).version for user in users]

    assert len(set(versions)) == 3
    assert versions[2] == versions[3]


def test_a_stranger_is_shown_an_empty_map():
    make.a_node(make.a_cluster("east"), "gpu-1")

    assert read_map(visiting(make.a_user())) == []


def test_a_version_of_somebody_elses_index_is_no_way_to_it(two_pools):
    mine, theirs, _ = two_pools
    eve, bob = (visiting(make.a_user(name, role="viewer", on=on)) for name, on in (("eve", mine), ("bob", theirs)))
    etag = bob.get(INDEX)["ETag"]

    answer = eve.get(INDEX, headers={"If-None-Match": etag})

    assert answer.status_code == 200
    assert b"theirs" not in answer.content


@pytest.mark.parametrize("path", [RASTER, INDEX])
def test_what_did_not_change_is_not_sent_again(viewer, path):
    make.a_node(make.a_cluster())
    first = viewer.get(path)

    again = viewer.get(path, headers={"If-None-Match": first["ETag"]})

    assert (again.status_code, again.content, again["ETag"]) == (304, b"", first["ETag"])
    assert "private" in first["Cache-Control"]


def test_a_pod_moves_the_raster_and_leaves_the_index(viewer):
    node = make.a_node(make.a_cluster())
    before = [viewer.get(path)["ETag"] for path in (RASTER, INDEX)]

    Node.objects.filter(pk=node.pk).update(gpu_allocated=4)
    after = [viewer.get(path)["ETag"] for path in (RASTER, INDEX)]

    assert after[0] != before[0]
    assert after[1] == before[1]


@pytest.mark.parametrize(
    "change",
    [
        {"driver_version": "1"},
        {"driver_unknown_since": NOON},
        {"name": "x"},
        {"zone": "b"},
        {"is_gpu_node": False},
    ],
)
def test_what_a_node_is_found_by_moves_the_index_and_the_raster_names_it(viewer, change):
    node = make.a_node(make.a_cluster())
    before = viewer.get(INDEX)["ETag"]

    Node.objects.filter(pk=node.pk).update(**change)

    assert viewer.get(INDEX)["ETag"] != before
    assert read_raster(viewer)[0]["index"] == viewer.get(INDEX).json()["version"]


def test_a_pool_that_is_renamed_moves_the_index(viewer):
    pool = make.a_pool(make.a_cluster("east"), "old")
    make.a_node(pool.cluster, pool=pool)
    before = viewer.get(INDEX)["ETag"]

    pool.name = "new"
    pool.save()

    assert viewer.get(INDEX)["ETag"] != before
    assert read_map(viewer)[0].by["pool"] == "new"


def test_it_is_packed_for_who_unpacks_it(viewer):
    for number in range(50):
        make.a_node(make.a_cluster(), f"gpu-{number}")
    for path in (RASTER, INDEX):
        plain = viewer.get(path)

        answer = viewer.get(path, headers={"Accept-Encoding": "gzip, br"})

        assert (answer["Content-Encoding"], gzip.decompress(answer.content)) == ("gzip", plain.content)
        assert "Accept-Encoding" in plain["Vary"]
        assert int(answer["Content-Length"]) == len(answer.content) < len(plain.content)


def test_no_node_is_read_for_a_raster_and_an_index_is_made_once(viewer, monkeypatch):
    make.a_node(make.a_cluster())
    read_map(viewer)
    make.counted()
    monkeypatch.setattr(make, "counted", lambda: None)

    with CaptureQueriesContext(connection) as queries:
        read_map(viewer)

    assert not [each["sql"] for each in queries if 'FROM "fleet_node"' in each["sql"]]


def test_a_raster_of_5000_nodes_and_40000_gpus_is_within_60_kb():
    from fleet.map_cells.cell import CellColumns, cells_of

    node = cells_of(9, is_held=True, is_critical=True, is_away=False, whole=(5, 8, 8), parts=(0, 0, 0), physical=8)

    assert len(bytes(CellColumns.of([node] * 5000))) == 50_000


def test_only_a_few_indexes_are_kept():
    make.a_node(make.a_cluster())
    seen, indexes = SeenMap.by(make.counted(make.a_user(role="viewer"))), Indexes()
    for number in range(20):
        indexes.of(SeenMap(seen.clusters, {number: "x"}))

    assert len(indexes._made) == 8


def test_a_node_that_went_while_the_index_was_read_keeps_its_place():
    cluster = make.a_cluster()
    nodes = [make.a_node(cluster, f"gpu-{number}") for number in range(3)]
    seen = SeenMap.by(make.counted(make.a_user(role="viewer")))
    nodes[1].delete()

    import json

    made = json.loads(Indexes().of(seen))

    assert made["names"] == ["gpu-0", "", "gpu-2"]
    assert len(made["keys"]) == len(made["by"]["zone"]["at"]) == 3


def test_where_pods_were_never_read_the_raster_says_so(viewer):
    cluster = make.a_cluster()
    make.a_node(cluster)
    Bookmark.objects.filter(cluster=cluster, kind="pods").delete()

    head, _ = read_raster(viewer)

    assert head["clusters"][0]["knows_pods"] is False
