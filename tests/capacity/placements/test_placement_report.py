"""The placement of a pool's pods, read from rows: its card, its REST answer and its finding."""

from datetime import timedelta

import pytest

from capacity.placements.placement_findings import BROKEN_POLICY, broken_policies
from capacity.placements.pod_classes import class_of
from fleet.models import Bookmark, Gpu, Pod, Workload
from health.evaluation.finding_sources import SOURCES
from tests import make
from tests.callers import calling
from tests.make import NOON
from tests.pages import page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now"), pytest.mark.sqlite]
RACK = "example.com/rack"


@pytest.fixture
def bob():
    return make.a_user("bob", role="viewer")


def a_pool(policy: str, **given):
    return make.a_pool(make.a_cluster("east"), "h200", placement_policy=policy, **given)


def a_node(pool, name: str, rack: str = "", **given):
    return make.a_node(pool.cluster, name, pool=pool, labels={RACK: rack} if rack else {}, gpu_allocatable=8, **given)


def placement(user, pool) -> dict:
    return calling(user).get(f"/api/v1/pools/{pool.pk}/placement").json()["placement"]


def test_unpacked_pods_break_the_policy_pack(bob):
    pool = a_pool("pack")
    for name in ("a", "b"):
        make.a_pod(a_node(pool, name), f"train-{name}", gpus=4)

    found = placement(bob, pool)
    text = page(visiting(bob), f"/parts/pools/{pool.pk}/placement").text

    assert (found["state"], found["pack"]) == ("broken", {"used": 2, "needed": 1, "free": 8})
    assert "The running pods break the policy." in text
    [(subject, problem)] = broken_policies(pool.cluster, now=NOON)
    assert (subject, problem.title) == ("pool h200", "Pods of pool h200 are not packed")


def test_pods_of_one_rack_break_the_policy_spread_and_replica_sets_count_together(bob):
    pool = a_pool("spread", spread_label=RACK)
    first, second = a_node(pool, "a", "r1"), a_node(pool, "b", "r1")
    a_node(pool, "c", "r2")
    a_node(pool, "d")
    for node, uid in ((first, "old"), (second, "new")):
        Workload.objects.create(
            cluster=pool.cluster, uid=uid, kind="ReplicaSet", namespace="team-a", name=uid, owner_kind="Deployment",
            owner_name="chat", changed_at=NOON, created_at=NOON,
        )  # fmt: skip
        make.a_pod(node, uid, owner_kind="ReplicaSet", owner_name=uid, owner_uid=uid)

    found = placement(bob, pool)

    assert found["state"] == "broken"
    assert found["spread"] == {
        "domains": 2, "unlabelled": 1, "workloads": 1, "concentrated": 1,
        "worst": [{"name": "Deployment team-a/chat", "pods": 2, "domain": "r1", "pods_in_domain": 2}],
    }  # fmt: skip
    [(_, problem)] = broken_policies(pool.cluster, now=NOON)
    assert problem.evidence[1].value == "2 of 2 pods on r1"


def test_a_class_of_pods_has_a_policy_of_its_own_around_the_others(bob):
    pool = a_pool("none", training_placement="pack", inference_placement="spread", spread_label=RACK)
    nodes = [a_node(pool, name, rack) for name, rack in (("a", "r1"), ("b", "r1"), ("c", "r2"))]
    for node in nodes[:2]:
        make.a_pod(node, f"train-{node.name}", gpus=2, owner_kind="Job", owner_name=f"train-{node.name}")
        make.a_pod(node, f"chat-{node.name}", gpus=5, owner_kind="StatefulSet", owner_name="chat")

    found = placement(bob, pool)

    assert found["state"] == "no_policy"
    training, inference = found["classes"]
    assert (training["workload_class"], training["state"]) == ("training", "kept")
    assert training["pack"] == {"used": 2, "needed": 2, "free": 2}, "3 GPUs beside the services: one job fits each"
    assert (inference["workload_class"], inference["state"]) == ("inference", "broken")
    [(subject, problem)] = broken_policies(pool.cluster, now=NOON)
    assert (subject, problem.title) == ("pool h200 inference", "Services of pool h200 are concentrated")
    text = page(visiting(bob), f"/parts/pools/{pool.pk}/placement").text
    assert "The running pods break the policy." in text
    small = make.a_pod(nodes[2], "small", gpus=2, owner_kind="Job", owner_name="small")
    assert placement(bob, pool)["classes"][0]["state"] == "kept", "no node has room for it beside the others"
    Pod.objects.filter(pk=small.pk).update(gpus=1)
    assert placement(bob, pool)["classes"][0]["state"] == "broken", "node a has room for it: node c comes free"


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        (["InferenceService", "Deployment", "ReplicaSet"], "inference"),
        (["DynamoGraphDeployment", "Foo"], None),
        (["Notebook", "StatefulSet"], "development"),
        (["RayJob", "RayCluster"], "training"),
        (["JAXJob"], "training"),
        ([""], "development"),
    ],
)
def test_the_topmost_owner_of_a_known_kind_tells_the_class(kinds, expected):
    assert class_of(kinds) == expected


def test_pods_below_an_owner_of_an_unknown_kind_have_a_class(bob):
    pool = a_pool("none", inference_placement="pack")
    node = a_node(pool, "a")
    Workload.objects.create(
        cluster=pool.cluster, uid="rs", kind="ReplicaSet", namespace="team-a", name="rs", owner_kind="InferenceService",
        owner_name="chat", owner_uid="d", changed_at=NOON, created_at=NOON,
    )  # fmt: skip
    make.a_pod(node, "x", owner_kind="ReplicaSet", owner_name="rs", owner_uid="rs")

    assert placement(bob, pool)["classes"][0]["pack"]["used"] == 1


def test_without_labels_the_spread_is_unknown_and_without_reads_so_is_everything(bob):
    pool = a_pool("spread", spread_label=RACK)
    make.a_pod(a_node(pool, "a"), "x")

    assert placement(bob, pool)["state"] == "unknown"
    assert list(broken_policies(pool.cluster, now=NOON)) == []
    Bookmark.objects.filter(kind="pods").update(listed_at=None)
    assert placement(bob, pool) is None
    assert "were never read" in page(visiting(bob), f"/parts/pools/{pool.pk}/placement").text


@pytest.mark.parametrize("given", [{"policy": "pack"}, {"policy": "spread", "spread_label": RACK}])
def test_a_policy_without_pods_to_compare_is_not_kept(bob, given):
    pool = a_pool(**given)
    for rack in ("r1", "r2"):
        make.a_pod(a_node(pool, rack, rack), f"single-{rack}", gpus=0, is_tenant=True, owner_name=rack)

    assert placement(bob, pool)["state"] == "no_pods"
    assert "No running pods to compare." in page(visiting(bob), f"/parts/pools/{pool.pk}/placement").text


def test_namespaces_on_one_shared_gpu_are_counted(bob):
    pool = a_pool("none")
    node = a_node(pool, "shared", shares_allocatable=4, shares_expected=4, layout="")
    Gpu.objects.filter(node=node, index=0).update(uuid="GPU-0")
    for namespace in ("team-a", "team-b"):
        make.a_pod(node, "notebook", namespace=namespace, devices={"nvidia.com/gpu": ["GPU-0"]})

    found = placement(bob, pool)

    assert (found["state"], found["shared"]["gpus"], found["shared"]["most"]) == ("no_policy", 1, 2)


def test_the_finding_opens_after_an_hour_and_leads_to_its_pool():
    pool = a_pool("pack")

    assert SOURCES[BROKEN_POLICY.key].after == timedelta(hours=1)
    assert BROKEN_POLICY.page({"pool": pool.pk}) == f"/pools/{pool.pk}"
