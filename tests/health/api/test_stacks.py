"""What of the GPU stack runs on a node, and what fits together in a cluster, as REST has it."""

from datetime import timedelta

import pytest

from fleet.models import Bookmark, GoneNode
from tests.make import NOON, a_cluster, a_driver_object, a_fleet, a_node, a_pod, an_operand

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]


def stack_of(caller, node) -> dict:
    return caller.get(caller.get(f"/api/v1/nodes/{node.pk}").json()["stack"]).json()


def test_a_node_says_which_operand_is_not_ready_and_why(bob):
    node = a_node(a_cluster())
    driver, _ = an_operand(node.cluster), an_operand(node.cluster, "device-plugin")
    a_pod(
        node, "driver-x", gpus=0, operand="driver", owner_uid=driver.uid, is_ready=False,
        waiting_reason="CrashLoopBackOff: back-off 5m0s",
    )  # fmt: skip

    one, other = stack_of(bob, node)["operands"]

    assert (one["title"], one["cause"]["key"], one["cause"]["weight"]) == ("Driver", "crashed", "wrong")
    assert one["reason"].startswith("A container keeps crashing (CrashLoopBackOff).")
    assert (other["title"], other["pod"]) == ("Device plugin", "")
    assert "No pod on this node" in other["reason"]


def test_a_stack_says_how_old_it_is(bob):
    node = a_node(a_cluster())
    a_pod(node, gpus=0, operand="driver")
    before = stack_of(bob, node)
    Bookmark.objects.filter(kind="pods").update(state="forbidden", last_seen_at=NOON - timedelta(hours=2))
    after = stack_of(bob, node)

    assert (before["as_of"], before["pods_freshness"]["state"]) == (None, "live")
    assert (after["as_of"], after["pods_freshness"]["state"]) == ("2026-11-21T10:00:00Z", "forbidden")


def test_driver_versions_that_disagree_are_named_side_by_side(bob):
    node = a_node(a_cluster(), driver_version="570.172.08", driver_owner="h200")
    a_driver_object(node.cluster, "h200", version="580.95.05")
    a_pod(node, gpus=0, operand="driver", image="nvcr.io/nvidia/driver:580.95.05-ubuntu24.04")

    driver = stack_of(bob, node)["driver"]

    assert driver["disagreement"] == (
        "The node runs 570.172.08, its driver pod carries 580.95.05-ubuntu24.04, the cluster asks for 580.95.05."
    )


def test_one_cluster_tells_what_fits_together(bob):
    cluster = a_cluster(server_version="v1.34.2")
    a_driver_object(cluster, "cluster-policy", kind="ClusterPolicy", operator_version="v26.7.0")
    as_listed = {"os_image": "Ubuntu 24.04.2 LTS", "container_runtime": "containerd://2.1.4"}
    a_node(cluster, driver_version="570.158.01", mig_strategy="mixed", **as_listed)

    found = bob.get(bob.get(f"/api/v1/clusters/{cluster.pk}").json()["compatibility"]).json()

    first = found["verdicts"][0]
    assert found["worst"] == "known-bad"
    assert (first["subject"], first["nodes"], first["read_on"]) == ("Mixed MIG on R570", 1, "2026-08-21")
    assert first["source"].startswith("NVIDIA/cloud-native-docs:")


def test_what_fits_together_says_how_old_it_is(bob):
    cluster = a_fleet("north")
    path = f"/api/v1/clusters/{cluster.pk}/compatibility"
    assert bob.get(path).json()["freshness"]["state"] == "live"

    Bookmark.objects.filter(cluster=cluster).update(last_seen_at=NOON - timedelta(minutes=10))

    assert bob.get(path).json()["freshness"]["state"] == "stale"


def test_are_shown_to_who_sees_the_node_or_the_cluster(nobody, eve, bob):
    node = a_node(a_cluster())
    places = f"/api/v1/nodes/{node.pk}/stack", f"/api/v1/clusters/{node.cluster_id}/compatibility"

    for place in places:
        assert [caller.get(place).status_code for caller in (nobody, eve, bob)] == [401, 404, 200]


def test_of_a_node_that_left_its_stack_is_gone_as_the_node_is(bob):
    cluster = a_cluster()
    GoneNode.objects.create(node_id=9000, cluster=cluster, uid="u9000", name="gpu-001", gone_at=NOON)

    reply = bob.get("/api/v1/nodes/9000/stack")

    assert (reply.status_code, reply.json()["gone"]["name"]) == (410, "gpu-001")


def test_the_checklist_of_a_node_has_a_title_an_answer_and_a_reason_for_each_check(bob):
    node = a_node(a_cluster(), "gpu-1")

    answer = bob.get(f"/api/v1/nodes/{node.pk}/checklist").json()

    assert {"key": "labels", "title": "Vendor and product labels", "answer": "yes",
            "sentence": "The labels name NVIDIA-H200.", "steps": []} in answer["items"]  # fmt: skip
    assert {item["answer"] for item in answer["items"]} <= {"yes", "no", "unknown"}


def test_one_node_tells_what_is_its_own_and_what_is_common(bob):
    cluster = a_cluster(server_version="v1.34.2")
    a_driver_object(cluster, "cluster-policy", kind="ClusterPolicy", operator_version="v26.7.0")
    as_listed = {"os_image": "Ubuntu 24.04.2 LTS", "container_runtime": "containerd://2.1.4"}
    nodes = [a_node(cluster, driver_version="580.126.20", **as_listed) for _ in range(3)]
    other = a_node(cluster, driver_version="570.158.01", mig_strategy="mixed", **as_listed)

    usual, own = (bob.get(f"/api/v1/nodes/{node.pk}/compatibility").json() for node in (nodes[0], other))

    assert (usual["is_compared"], usual["freshness"]["state"]) == (True, "live")
    assert usual["verdicts"]
    assert all(verdict["is_common"] for verdict in usual["verdicts"])
    assert next(verdict["answer"] for verdict in own["verdicts"] if not verdict["is_common"]) == "known-bad"


def test_a_node_without_gpus_is_not_compared(bob):
    node = a_node(a_cluster(), gpus=0, is_gpu_node=False)

    answer = bob.get(f"/api/v1/nodes/{node.pk}/compatibility").json()

    assert (answer["is_compared"], answer["verdicts"]) == (False, [])
