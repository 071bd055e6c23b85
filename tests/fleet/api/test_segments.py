import pytest

from fleet.api.filters import NodeFilters
from fleet.segments.facets import FACETS
from tests.callers import calling
from tests.make import a_cluster, a_node, a_pool, a_user


def names(reply) -> list[str]:
    assert reply.status_code == 200, reply.json()
    return sorted(row["name"] for row in reply.json()["results"])


def test_facets_are_counted_and_crossed(bob):
    cluster = a_cluster("east")
    a_node(cluster, zone="a")
    a_node(cluster, zone="b", driver_version="580.95.05")

    reply = bob.get("/api/v1/segments?zone=b&rows=zone&columns=driver_version")

    said = reply.json()
    assert reply.status_code == 200
    assert (said["nodes"], said["gpus"], said["all_nodes"]) == (1, 8, 2)
    (zone,) = [each for each in said["facets"] if each["facet"] == "zone"]
    assert [(each["value"], each["nodes"], each["is_chosen"]) for each in zone["values"]] == [
        ("a", 1, False),
        ("b", 1, True),
    ]
    cell = {"value": "580.95.05", "nodes": 1, "gpus": 8, "uncounted_nodes": 0}
    assert said["cross"]["lines"] == [{"value": "b", "cells": [cell]}]


def test_gpus_that_nobody_counted_are_not_none(bob):
    cluster, dark = a_cluster("east"), a_cluster("dark", seen_at=None)
    a_node(cluster, zone="a", physical_gpus=None, gpus=0, is_gpu_node=True)
    a_node(cluster, zone="b")
    a_node(cluster, zone="b", physical_gpus=None, gpus=0, is_gpu_node=True)

    said = bob.get("/api/v1/segments?rows=zone&columns=kernel").json()
    alone = bob.get("/api/v1/segments?zone=a").json()

    (zone,) = [each for each in said["facets"] if each["facet"] == "zone"]
    assert {each["value"]: (each["nodes"], each["uncounted_nodes"], each["gpus"]) for each in zone["values"]} == {
        "a": (1, 1, None),
        "b": (2, 1, 8),
    }
    assert (said["gpus"], said["uncounted_nodes"]) == (8, 2)
    assert (alone["nodes"], alone["gpus"], alone["uncounted_nodes"]) == (1, None, 1)
    assert said["unseen"] == [{"id": dark.pk, "name": "dark"}]
    assert sorted(str(each["gpus"]) for line in said["cross"]["lines"] for each in line["cells"]) == ["8", "None"]


def test_no_table_is_made_unasked(bob):
    a_node(a_cluster())

    assert bob.get("/api/v1/segments").json()["cross"] is None


@pytest.mark.parametrize(
    ("query", "field"),
    [("zones=a", "zones"), ("rows=zone", "columns"), ("rows=x&columns=zone", "rows"), (f"zone={'x' * 300}", "zone")],
)
def test_what_is_no_facet_is_refused(bob, query, field):
    reply = bob.get(f"/api/v1/segments?{query}")

    assert reply.status_code == 400
    assert reply.json()["errors"][0]["field"] == field


def test_only_what_may_be_seen_is_counted(now, db):
    cluster = a_cluster()
    pool = a_pool(cluster)
    a_node(cluster, pool=pool)
    a_node(cluster)

    said = calling(a_user(role="viewer", on=pool)).get("/api/v1/segments").json()

    assert said["all_nodes"] == 1


def test_every_facet_narrows_the_list_of_nodes():
    assert {facet.key for facet in FACETS} <= set(NodeFilters.base_filters)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("zone=a&zone=b", ["a", "b"]),
        ("zone=unknown", ["c"]),
        ("pool=none", ["b"]),
        ("pool=several", ["c"]),
        ("environment=production", ["a"]),
        ("environment=no-pool&environment=several", ["b", "c"]),
        ("selector=zone%20in%20(a,b),!spot", ["a", "b"]),
        ("sharing=mps", ["b"]),
        ("cluster=east&product=NVIDIA-H200", ["a", "b", "c"]),
    ],
)
def test_nodes_are_narrowed(bob, query, found):
    cluster = a_cluster("east")
    pool = a_pool(cluster, environment="production")
    a_node(cluster, "a", pool=pool, zone="a", labels={"zone": "a"})
    a_node(cluster, "b", zone="b", labels={"zone": "b"}, sharing="mps")
    a_node(cluster, "c", pool=pool, labels={"spot": "1"}).pools.add(a_pool(cluster))

    assert names(bob.get(f"/api/v1/nodes?{query}")) == found


def test_a_selector_that_cannot_be_read_is_refused(bob):
    reply = bob.get("/api/v1/nodes?selector=zone%20in%20a")

    assert reply.status_code == 400
    assert "is not a label selector" in reply.json()["detail"]
