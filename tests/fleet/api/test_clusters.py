from datetime import timedelta

import pytest

from gpu.resources import Use
from tests.callers import calling
from tests.make import NOON, a_bookmark, a_cluster, a_driver_object, a_node, a_pool, a_user, an_exporter_round


def shown(client, cluster) -> dict:
    return client.get(f"/api/v1/clusters/{cluster.pk}").json()


def of(kind: str, cluster: dict) -> dict:
    return next(row for row in cluster["freshness"] if row["kind"] == kind)


def test_a_cluster_says_how_old_each_kind_is_and_why(bob):
    cluster = a_cluster(seen_at=NOON - timedelta(minutes=5))
    a_bookmark(cluster, "daemonsets.apps", state="forbidden", last_seen_at=None, message="list is not allowed.")

    found = shown(bob, cluster)

    assert of("nodes", found) == {
        "kind": "nodes",
        "state": "stale",
        "last_seen_at": "2026-11-21T11:55:00Z",
        "age_s": 300.0,
        "sentence": "Nodes were last observed at 2026-11-21 11:55:00 UTC.",
    }
    assert of("daemonsets.apps", found)["state"] == "forbidden"
    assert of("daemonsets.apps", found)["age_s"] is None
    assert "list is not allowed." in of("daemonsets.apps", found)["sentence"]


def test_a_cluster_that_was_never_watched_has_unknown_counts_not_zero(bob):
    found = shown(bob, a_cluster(seen_at=None))

    assert found["counts"]["nodes"] is None
    assert found["counts"]["gpus_missing"] is None
    assert of("nodes", found)["state"] == "never"


def test_an_empty_cluster_has_zero_nodes(bob):
    counts = shown(bob, a_cluster())["counts"]

    assert (counts["nodes"], counts["gpus_expected"], counts["driver_versions"]) == (0, 0, [])


def test_a_cluster_whose_pods_cannot_be_read_does_not_say_how_many_gpus_are_taken(bob):
    cluster = a_cluster(seen_at=None)
    a_bookmark(cluster, "nodes")
    a_bookmark(cluster, "pods", state="forbidden", last_seen_at=None)
    a_node(cluster)

    counts = shown(bob, cluster)["counts"]

    assert (counts["gpus_allocatable"], counts["gpus_allocated"]) == (8, None)


def test_what_is_counted(bob):
    cluster = a_cluster()
    sliced = {"slices_expected": 14, "slices_allocatable": 12, "slices_allocated": 5}
    a_node(cluster, gpu_allocated=8, is_held=True, shares_expected=32, shares_allocatable=32, shares_allocated=7)
    a_node(cluster, gpu_allocatable=7, is_ready=False, is_unschedulable=True, **sliced)
    a_node(cluster, gpu_allocatable=None, is_ready=None, driver_unknown_since=NOON)
    a_node(cluster, gpus=0, is_gpu_node=False, gpu_expected=None, gpu_allocatable=None, driver_version="")

    counts = shown(bob, cluster)["counts"]

    assert counts == {
        "nodes": 4,
        "gpu_nodes": 3,
        "ready": 1,
        "not_ready": 1,
        "readiness_unknown": 1,
        "unschedulable": 1,
        "held": 1,
        "physical_gpus": 24,
        "physical_gpus_by_use": {use: 24 if use == "whole" else 0 for use in Use},
        "uncounted_nodes": 0,
        "gpus_expected": 24,
        "gpus_allocatable": 15,
        "gpus_allocated": 8,
        "gpus_missing": 9,
        "gpus_away": 0,
        "slices_expected": 14,
        "slices_allocatable": 12,
        "slices_allocated": 5,
        "slices_missing": 2,
        "slices_away": 0,
        "shares_expected": 32,
        "shares_allocatable": 32,
        "shares_allocated": 7,
        "shares_missing": 0,
        "shares_away": 0,
        "driver_versions": [{"version": "570.172.08", "nodes": 2}, {"version": "", "nodes": 1}],
    }


def test_gpu_nodes_that_never_named_their_gpus_have_an_unknown_number_not_zero(bob):
    cluster = a_cluster()
    a_node(cluster, gpus=0, gpu_expected=None, gpu_capacity=None, gpu_allocatable=None)

    counts = shown(bob, cluster)["counts"]
    (row,) = bob.get("/api/v1/nodes").json()["results"]

    assert (counts["gpu_nodes"], counts["gpus_expected"], counts["gpus_missing"]) == (1, None, None)
    assert counts["gpus_away"] is None
    assert row["gpus_missing"] is None


def test_a_viewer_of_one_pool_counts_its_nodes_only(now, db):
    cluster = a_cluster()
    pool = a_pool(cluster)
    a_node(cluster, pool=pool)
    a_node(cluster)
    seer = calling(a_user(role="viewer", on=pool))

    assert shown(seer, cluster)["counts"]["nodes"] == 1


def test_how_it_is_reached_is_for_its_admins(root, bob, now, db):
    cluster, other = a_cluster(), a_cluster()
    own = calling(a_user(role="admin", on=cluster))

    assert shown(root, cluster)["kubeconfig"] == shown(own, cluster)["kubeconfig"] == "/etc/quarterdeck/kubeconfig"
    assert shown(bob, cluster)["kubeconfig"] is shown(bob, cluster)["context"] is None
    assert shown(root, other)["kubeconfig"]


@pytest.mark.parametrize("number", [1, 5])
def test_a_list_costs_the_same_queries_whatever_its_length(bob, number, django_assert_num_queries):
    for _ in range(number):
        a_node(a_cluster())

    with django_assert_num_queries(9):
        rows = bob.get("/api/v1/clusters").json()["results"]

    assert len(rows) == number


def test_who_may_see_a_cluster(nobody, eve, bob):
    place = f"/api/v1/clusters/{a_cluster().pk}"

    assert [caller.get(place).status_code for caller in (nobody, eve, bob)] == [401, 404, 200]


def test_one_cluster_tells_its_operator_and_its_mode(bob):
    cluster = a_cluster(server_version="v1.34.2")
    a_driver_object(cluster, "cluster-policy", kind="ClusterPolicy", operator_version="v26.7.0")

    found = shown(bob, cluster)

    assert found["observer"] is None
    assert found["operator"]["version"] == "26.7.0"
    assert found["operator"]["read_from"] == "labels of ClusterPolicy cluster-policy"
    assert found["driver_mode"]["mode"] == "ClusterPolicy"


def test_a_cluster_says_how_it_goes_with_its_exporters(bob):
    cluster = a_cluster()
    never = shown(bob, cluster)["exporters"]
    an_exporter_round(cluster, state="too-many", exporters=5000, message="Too many.")

    said = shown(bob, cluster)["exporters"]

    assert never is None
    assert (said["state"], said["exporters"], said["message"]) == ("too-many", 5000, "Too many.")


def test_a_cluster_sums_up_cpu_and_memory_of_nodes_with_gpus_and_others_apart(bob):
    cluster = a_cluster()
    a_node(cluster, cpu_allocatable_m=4000, cpu_tenants_m=3000, cpu_others_m=500)
    a_node(cluster, is_gpu_node=False, gpus=0)

    found = shown(bob, cluster)["cpu_memory"]

    known = {"allocatable": 4000, "requested": 3500, "tenants": 3000, "operands": 0, "others": 500, "free": 500}
    assert found["gpu_nodes"]["cpu"] == known
    assert (found["gpu_nodes"]["nodes"], found["gpu_nodes"]["silent"]) == (1, 1)  # it does not name its memory
    assert found["gpu_nodes"]["memory"]["allocatable"] is None
    assert found["other_nodes"]["cpu"]["requested"] == 0


def test_a_cluster_that_was_never_watched_has_unknown_sums_not_zero(bob):
    found = shown(bob, a_cluster(seen_at=None))["cpu_memory"]["gpu_nodes"]

    assert (found["nodes"], found["cpu"]["allocatable"], found["cpu"]["requested"]) == (None, None, None)
