"""GPUs, pods and driver objects: lists with nothing but their filters."""

from datetime import timedelta

import pytest

from fleet.models import Bookmark
from tests.make import (
    NOON,
    a_bookmark,
    a_cluster,
    a_device_told,
    a_driver_object,
    a_fleet,
    a_node,
    a_pod,
    a_reading,
)


def found(client, place: str) -> list[dict]:
    reply = client.get(f"/api/v1/{place}")
    assert reply.status_code == 200, reply.json()
    return reply.json()["results"]


def test_a_gpu_that_nothing_has_named_has_no_uuid(bob):
    node = a_node(a_cluster(), gpus=1)

    (gpu,) = found(bob, f"gpus?node={node.name}")

    assert (gpu["uuid"], gpu["index"], gpu["node"]["name"]) == (None, 0, node.name)


@pytest.mark.parametrize(
    ("asked", "names"),
    [
        ("namespace=team-b", ["b"]),
        ("is_tenant=true", ["a", "b"]),
        ("is_tenant=false", ["driver"]),
        ("operand=driver", ["driver"]),
        ("is_ready=false", ["b"]),
        ("phase=Pending", ["b"]),
        ("name=RIV", ["driver"]),
        ("ordering=-gpus,name", ["b", "a", "driver"]),
    ],
)
def test_pods_are_found(bob, asked, names):
    node = a_node(a_cluster())
    a_pod(node, "a")
    a_pod(node, "b", namespace="team-b", gpus=8, is_ready=False, phase="Pending")
    a_pod(node, "driver", namespace="gpu-operator", gpus=0, operand="driver")

    assert [pod["name"] for pod in found(bob, f"pods?{asked}")] == names


def test_a_driver_object_says_how_many_nodes_it_moves(bob):
    a_fleet(nodes=3)

    rows = {row["kind"]: row for row in found(bob, "driver-objects")}

    assert (rows["NVIDIADriver"]["nodes"], rows["NVIDIADriver"]["version"]) == (3, "570.172.08")
    assert (rows["ClusterPolicy"]["nodes"], rows["ClusterPolicy"]["version"]) == (0, None)


def test_a_driver_object_of_a_cluster_whose_nodes_were_never_seen_moves_an_unknown_number(bob):
    cluster = a_cluster(seen_at=None)
    a_bookmark(cluster, "nvidiadrivers.nvidia.com")
    a_driver_object(cluster)

    assert found(bob, "driver-objects")[0]["nodes"] is None


@pytest.mark.parametrize(("path", "kind"), [("pods", "pods"), ("driver-objects", "nvidiadrivers.nvidia.com")])
def test_a_row_says_how_old_it_is(bob, path, kind):
    cluster, other = a_cluster("prod"), a_cluster("east")
    for each in (cluster, other):
        a_pod(a_node(each))
        a_driver_object(each)
        a_bookmark(each, "nvidiadrivers.nvidia.com")
    marks = Bookmark.objects.filter(cluster=cluster, kind=kind)
    marks.update(state="forbidden", last_seen_at=NOON - timedelta(hours=2))

    said = {row["cluster"]["name"]: (row["freshness"], row["seen_at"]) for row in found(bob, path)}

    assert said == {"prod": ("forbidden", "2026-11-21T10:00:00Z"), "east": ("live", "2026-11-21T12:00:00Z")}


@pytest.mark.parametrize("path", ["pods", "driver-objects"])
def test_a_row_of_a_cluster_that_is_not_heard_is_stale(bob, path):
    cluster = a_cluster(seen_at=NOON - timedelta(hours=2))
    a_pod(a_node(cluster))
    a_driver_object(cluster)
    a_bookmark(cluster, "nvidiadrivers.nvidia.com", last_seen_at=NOON - timedelta(hours=2))

    (row,) = found(bob, path)

    assert (row["freshness"], row["seen_at"]) == ("stale", "2026-11-21T10:00:00Z")


@pytest.mark.parametrize(("path", "queries"), [("gpus", 10), ("pods", 7), ("driver-objects", 9)])
@pytest.mark.parametrize("number", [1, 4])
def test_a_list_costs_the_same_queries_whatever_its_length(bob, path, queries, number, django_assert_num_queries):
    for _ in range(number):
        node = a_node(a_cluster())
        a_pod(node)
        a_driver_object(node.cluster)

    with django_assert_num_queries(queries):
        assert len(found(bob, path)) >= number


def test_a_gpu_says_by_what_its_holder_is_known_and_since_when(bob):
    node = a_node(a_cluster(), gpus=2)
    a_reading(node, a_device_told(0, a_pod(node, "train")), a_device_told(1), read_at=NOON - timedelta(minutes=3))

    taken, free = found(bob, f"gpus?node={node.name}")

    (allocation,) = taken["allocations"]
    assert (taken["uuid"], allocation["pod"]["name"], allocation["reported_by"]) == ("GPU-0", "train", "metrics")
    assert (allocation["seen_at"], allocation["is_current"]) == ("2026-11-21T11:57:00Z", False)
    assert (free["allocations"], free["may_have_more"]) == ([], False)
