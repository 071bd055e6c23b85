from datetime import timedelta

import pytest
from django.http import QueryDict

from fleet.models import GoneNode, Node, Pool
from fleet.web.filters import NodeFilter
from tests.callers import calling
from tests.make import (
    NOON,
    a_bookmark,
    a_cluster,
    a_driver_object,
    a_node,
    a_node_event,
    a_pod,
    a_pool,
    a_user,
    an_operand,
)

pytestmark = pytest.mark.sqlite


def names(reply) -> list[str]:
    assert reply.status_code == 200, reply.json()
    return [row["name"] for row in reply.json()["results"]]


def test_every_row_says_when_it_was_seen(bob):
    a_node(a_cluster(seen_at=NOON - timedelta(minutes=5)))

    (row,) = bob.get("/api/v1/nodes").json()["results"]

    assert row["seen_at"] == "2026-11-21T11:55:00Z"
    assert row["freshness"] == "stale"


def test_a_node_of_a_cluster_whose_pods_were_never_seen_has_an_unknown_allocation_not_none(bob):
    cluster = a_cluster(seen_at=None)
    a_bookmark(cluster, "nodes")
    a_node(cluster, gpu_allocated=0)

    (row,) = bob.get("/api/v1/nodes").json()["results"]

    assert row["gpu_allocated"] is None
    assert row["gpu_allocatable"] == 8


def test_a_gpu_that_is_lost_is_missing_and_not_allocated_whoever_holds_it(bob):
    """As on the page of the node, and in every sum."""
    a_node(a_cluster(), gpu_expected=8, gpu_allocatable=6, gpu_allocated=8)

    (row,) = bob.get("/api/v1/nodes").json()["results"]

    assert (row["gpu_allocated"], row["gpus_missing"], row["gpu_expected"]) == (6, 2, 8)


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("cluster=west", ["w1"]),
        ("pool=gold", ["e1"]),
        ("name=E", ["e1", "e2"]),
        ("search=6.5.0", ["e2"]),
        ("driver_version=580.95.05", ["e2"]),
        ("product=NVIDIA-A100", ["w1"]),
        ("upgrade_state=upgrade-failed", ["w1"]),
        ("is_ready=false", ["e2"]),
        ("is_reporting=false", ["w1"]),
        ("is_unschedulable=true", ["e2"]),
        ("is_held=true", ["e1"]),
        ("has_missing_gpus=true", ["e2", "w1"]),
        ("has_missing_gpus=false", ["e1"]),
        ("has_fault=true", ["e2", "w1"]),
        ("has_fault=false", ["e1"]),
        ("ordering=-name", ["w1", "e2", "e1"]),
    ],
)
def test_filters(bob, asked, found):
    east, west = a_cluster("east"), a_cluster("west")
    a_node(east, "e1", pool=a_pool(east, "gold"), is_held=True)
    a_node(
        east, "e2", is_ready=False, gpu_allocatable=7, kernel="6.5.0", driver_version="580.95.05", is_unschedulable=True
    )
    a_node(west, "w1", is_ready=None, gpu_allocatable=None, gpu_product="NVIDIA-A100", upgrade_state="upgrade-failed")

    reply = bob.get(f"/api/v1/nodes?{asked}")

    assert names(reply) == found


def test_in_the_order_of_drivers_whose_label_is_gone_stands_with_who_never_said_it(bob):
    east = a_cluster("east")
    a_node(east, "new", driver_version="580.95.05")
    a_node(east, "silent", driver_version="580.126.20", driver_unknown_since=NOON)
    a_node(east, "old", driver_version="570.172.08")
    a_node(east, "never", driver_version="")

    rows = bob.get("/api/v1/nodes?ordering=-driver_version")

    assert names(rows)[:2] == ["new", "old"]
    assert set(names(rows)[2:]) == {"silent", "never"}


def test_in_the_order_of_allocated_gpus_what_is_held_and_lost_does_not_count(bob):
    """As none of it is shown as allocated."""
    east = a_cluster("east")
    for name, allocated, allocatable in (("lost", 8, 4), ("busy", 6, 8), ("away", 8, 0), ("idle", 1, 8)):
        a_node(east, name, gpu_allocated=allocated, gpu_allocatable=allocatable, gpu_expected=8)

    rows = bob.get("/api/v1/nodes?ordering=-gpu_allocated")

    assert [row["gpu_allocated"] for row in rows.json()["results"]] == [6, 4, 1, 0]
    assert names(rows) == ["busy", "lost", "idle", "away"]


@pytest.mark.parametrize(
    "given",
    [
        {"upgrade_state": "drain-required", "gpu_allocatable": 0},  # its GPUs are away with the driver
        {"upgrade_state": "drain-required", "is_ready": False},
        {"gpu_allocatable": 0},
        {"unresolved": 1},
        {"is_unschedulable": True},
        {},
    ],
)
def test_what_has_a_fault_here_has_one_on_the_page(bob, given):
    a_node(a_cluster(), "one", **given)

    found = NodeFilter.read(QueryDict("faults=1")).narrow(Node.objects.all(), pools=Pool.objects.all())

    assert names(bob.get("/api/v1/nodes?has_fault=true")) == [node.name for node in found]
    assert len(names(bob.get("/api/v1/nodes?has_fault=false"))) == 1 - len(found)


def test_how_many_of_its_findings_are_critical_is_said_beside_all(bob):
    a_node(a_cluster(), "one", unresolved=3, critical=1)

    (row,) = bob.get("/api/v1/nodes").json()["results"]

    assert (row["state"], row["unresolved"], row["critical"]) == ("has-findings", 3, 1)


def test_a_node_in_two_pools_is_one_row(now, db):
    cluster = a_cluster()
    one, two = a_pool(cluster), a_pool(cluster)
    node = a_node(cluster, pool=one)
    node.pools.add(two)
    seer = a_user(role="viewer", on=one)
    reply = calling(seer).get("/api/v1/nodes")

    assert names(reply) == [node.name]


def test_a_pool_that_is_not_seen_is_not_named_by_a_node_it_shares(now, db):
    cluster = a_cluster()
    mine = a_pool(cluster, "mine")
    node = a_node(cluster, pool=mine)
    node.pools.add(a_pool(cluster, "secret"))
    seer = calling(a_user(role="viewer", on=mine))

    (row,) = seer.get("/api/v1/nodes").json()["results"]

    assert row["pools"] == seer.get(f"/api/v1/nodes/{node.pk}").json()["pools"] == [{"id": mine.pk, "name": "mine"}]


def test_a_filter_by_a_pool_that_is_not_seen_finds_nothing(now, db):
    cluster = a_cluster()
    mine = a_pool(cluster, "mine")
    a_node(cluster, "both", pool=mine).pools.add(a_pool(cluster, "secret"))
    seer = calling(a_user(role="viewer", on=mine))

    assert names(seer.get("/api/v1/nodes?pool=mine")) == ["both"]
    assert names(seer.get("/api/v1/nodes?pool=secret")) == []


def test_a_viewer_of_one_pool_sees_its_nodes_only(now, db):
    cluster = a_cluster()
    pool = a_pool(cluster)
    mine, other = a_node(cluster, pool=pool), a_node(cluster)
    seer = calling(a_user(role="viewer", on=pool))

    assert names(seer.get("/api/v1/nodes")) == [mine.name]
    assert seer.get(f"/api/v1/nodes/{other.pk}").status_code == 404


def test_a_filter_that_does_not_exist_is_refused_not_ignored(bob):
    reply = bob.get("/api/v1/nodes?clutser=east")

    assert reply.status_code == 400
    assert reply["Content-Type"] == "application/problem+json"
    assert "Unknown filter." in reply.json()["errors"][0]["sentence"]


@pytest.mark.parametrize(
    "asked",
    ["limit=0", "limit=1001", "limit=x", "limit=٣", "offset=-1", "is_ready=maybe", "ordering=secret", "name=%00"],
)
def test_a_value_that_cannot_be_is_refused(bob, asked):
    reply = bob.get(f"/api/v1/nodes?{asked}")

    assert reply.status_code == 400
    assert reply.json()["errors"][0]["field"] == asked.split("=")[0]


@pytest.mark.parametrize("number", [3, 12])
def test_a_list_costs_the_same_queries_whatever_its_length(bob, number, django_assert_num_queries):
    cluster = a_cluster()
    for _ in range(number):
        a_node(cluster, pool=a_pool(cluster))

    with django_assert_num_queries(7):  # session, user, roles, count, nodes, pools, bookmarks
        reply = bob.get("/api/v1/nodes")

    assert len(reply.json()["results"]) == number


@pytest.mark.parametrize("number", [1, 6])
def test_a_node_costs_the_same_queries_whatever_is_on_it(bob, number, django_assert_num_queries):
    node = a_node(a_cluster(), gpus=number)
    an_operand(node.cluster)
    a_pod(node, namespace="gpu-operator", gpus=0, operand="driver")
    for _ in range(number):
        a_pod(node)

    with django_assert_num_queries(13):
        reply = bob.get(f"/api/v1/nodes/{node.pk}")

    assert len(reply.json()["pods"]) - 1 == len(reply.json()["gpus"]) == number


def test_the_timeline_is_this_nodes_the_newest_first(bob):
    node = a_node(a_cluster())
    a_node_event(node, "first", at=NOON - timedelta(minutes=2))
    a_node_event(node, "second")
    a_node_event(a_node(node.cluster), "another's")

    rows = bob.get(f"/api/v1/nodes/{node.pk}/events").json()["results"]

    assert [row["sentence"] for row in rows] == ["second", "first"]


@pytest.mark.parametrize("path", ["/api/v1/nodes/{}", "/api/v1/nodes/{}/events"])
def test_who_may_see_a_node(path, nobody, eve, bob):
    place = path.format(a_node(a_cluster()).pk)

    assert nobody.get(place).status_code == 401
    assert eve.get(place).status_code == 404
    assert bob.get(place).status_code == 200


@pytest.mark.parametrize("path", ["nodes", "gpus", "pods", "clusters", "pools", "driver-objects"])
def test_a_stranger_finds_every_list_empty(path, nobody, eve, bob):
    node = a_node(a_cluster())
    a_pod(node)
    a_pool(node.cluster)
    a_driver_object(node.cluster)

    assert nobody.get(f"/api/v1/{path}").status_code == 401
    assert eve.get(f"/api/v1/{path}").json()["count"] == 0
    assert bob.get(f"/api/v1/{path}").json()["count"] >= 1


def test_a_node_says_who_requests_how_much_of_its_cpu_and_memory(bob):
    node = a_node(a_cluster(), cpu_allocatable_m=4000, cpu_tenants_m=3000, cpu_operands_m=100, cpu_others_m=500)

    cpu = bob.get(f"/api/v1/nodes/{node.pk}").json()["cpu_memory"]["cpu"]

    known = {"allocatable": 4000, "requested": 3600, "tenants": 3000, "operands": 100, "others": 500, "free": 400}
    assert cpu == known


def test_what_pods_request_of_a_node_is_unknown_where_they_were_never_seen(bob):
    cluster = a_cluster(seen_at=None)
    a_bookmark(cluster, "nodes")
    node = a_node(cluster, cpu_allocatable_m=4000)

    cpu = bob.get(f"/api/v1/nodes/{node.pk}").json()["cpu_memory"]["cpu"]

    assert (cpu["allocatable"], cpu["requested"], cpu["tenants"], cpu["free"]) == (4000, None, None, None)


def test_a_node_that_left_is_gone_with_when_what_it_was_and_its_timeline(bob, eve):
    cluster = a_cluster("north")
    node = a_node(cluster, "gpu-001")
    a_node_event(node, "Runs driver 570.172.08.")
    pk, kept = node.pk, {"cluster": cluster, "uid": node.uid, "name": node.name}
    node.delete()
    GoneNode.objects.create(node_id=pk, gone_at=NOON, was={"Driver": "570.172.08", "OS": None}, **kept)
    again = a_node(cluster, "gpu-001", uid="another")

    reply = bob.get(f"/api/v1/nodes/{pk}")

    assert (reply.status_code, reply["Content-Type"]) == (410, "application/problem+json")
    assert reply.json()["type"] == "urn:quarterdeck:problem:node-left"
    assert reply.json()["detail"] == "gpu-001 left north at 2026-11-21 12:00:00 UTC."
    assert reply.json()["gone"] == {
        "id": pk, "cluster": {"id": cluster.pk, "name": "north"}, "name": "gpu-001", "uid": kept["uid"],
        "left_at": "2026-11-21T12:00:00Z", "was": {"Driver": "570.172.08", "OS": None}, "again": again.pk,
    }  # fmt: skip
    assert [line["sentence"] for line in bob.get(f"/api/v1/nodes/{pk}/events").json()["results"]] == [
        "Runs driver 570.172.08."
    ]
    for path in (f"/api/v1/nodes/{pk}", f"/api/v1/nodes/{pk}/events"):
        assert eve.get(path).status_code == 404
    Node.objects.all().delete()
    assert bob.get(f"/api/v1/nodes/{pk}").json()["gone"]["again"] is None


def test_who_sees_a_pool_only_is_told_of_what_left_it_and_of_nothing_else(now, db):
    cluster = a_cluster("north")
    pool = a_pool(cluster, "training")
    viewer = calling(a_user(role="viewer", on=pool))
    rows = [
        GoneNode.objects.create(node_id=9000 + number, cluster=cluster, uid=f"u{number}", name="gpu", gone_at=NOON)
        for number in range(2)
    ]
    rows[0].pools.set([pool])

    assert [viewer.get(f"/api/v1/nodes/{row.node_id}").status_code for row in rows] == [410, 404]
    assert [viewer.get(f"/api/v1/nodes/{row.node_id}/events").status_code for row in rows] == [200, 404]
