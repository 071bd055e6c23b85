"""Settings of tests by pool: images, thresholds, and claims where DRA offers the GPUs."""

from datetime import timedelta

import pytest

from fleet.models import Node
from operations import pool_tests
from operations.models import NodeTestJob
from operations.refusals import BadOperation
from operations.test_thresholds import thresholds_of
from tests.make import NOON, a_cluster, a_node, a_pool, an_operation
from tests.operations.test_rounds import begin, node, rounds
from tests.operations.test_test_job_step import jobs
from tests.rollouts.engine.ground import CANARY, Ground

pytestmark = pytest.mark.django_db
IMAGE = "registry.example.com/dcgm:5"


def in_pool(ground: Ground, **given) -> Node:
    row = Node.objects.get(cluster=ground.cluster, name=CANARY)
    a_pool(ground.cluster, "tested", **given).nodes.add(row)
    return row


def tested(ground: Ground):
    rounds(ground, begin(ground, "quarantine", CANARY))
    return rounds(ground, begin(ground, "test", CANARY, options={"test": "dcgm-3"}))


def spec(ground: Ground):
    (job,) = jobs(ground)
    pod = job["spec"]["template"]["spec"]
    return pod, pod["containers"][0]


def test_a_pool_has_its_own_image(ground: Ground):
    in_pool(ground, test_images=f"nccl=x,dcgm={IMAGE}")
    tested(ground)

    assert spec(ground)[1]["image"] == IMAGE


def test_nodes_of_several_pools_have_each_the_image_of_its_pool():
    cluster = a_cluster()
    one, two = a_node(cluster, "gpu-1"), a_node(cluster, "gpu-2")
    a_pool(cluster, "b", test_images="dcgm=late,nccl=b").nodes.add(one)
    a_pool(cluster, "a", test_images="dcgm=first").nodes.add(one)

    its = pool_tests.tests_of([one, two])

    assert (its[one.pk].image("dcgm"), its[one.pk].image("nccl")) == ("first", "b")
    assert pool_tests.common_image([one, two], "dcgm") == ""
    assert pool_tests.common_image([one, two], "nccl") == ""
    assert pool_tests.common_image([two], "nccl") is None
    assert pool_tests.common_image([one], "nccl", "dcgm") == "b"


def test_pools_with_nodes_of_a_pool_name_its_images(settings):
    settings.TEST_IMAGES = {"nccl": "x"}
    cluster = a_cluster()
    pool, other, far = (a_pool(cluster, name) for name in ("a", "b", "c"))
    node = a_node(cluster, "gpu-1")
    for each in (pool, other):
        each.nodes.add(node)
    other.test_images, far.test_images = "dcgm=x", "nvbandwidth=x"
    other.save()
    far.save()

    known = {
        at: [
            key
            for key in ("nccl", "dcgm", "nvbandwidth")
            if pool_tests.has_image(key, cluster_id=cluster.pk, pool_id=at)
        ]
        for at in (pool.pk, far.pk, None)
    }

    assert known == {
        pool.pk: ["nccl", "dcgm"], far.pk: ["nccl", "nvbandwidth"], None: ["nccl", "dcgm", "nvbandwidth"],
    }  # fmt: skip
    assert not pool_tests.has_image("dcgm", cluster_id=a_cluster("other").pk)


def test_where_dra_offers_the_gpus_the_job_claims_them(ground: Ground):
    """A Job that requests gpu.nvidia.com is refused by the API server, so no node of such a pool was ever validated."""
    row = in_pool(ground, test_claim_template="quarterdeck-test")
    Node.objects.filter(pk=row.pk).update(allocatable={"gpu.nvidia.com": row.gpu_allocatable})
    tested(ground)

    pod, container = spec(ground)
    assert pod["resourceClaims"] == [{"name": "gpus", "resourceClaimTemplateName": "quarterdeck-test"}]
    assert container["resources"]["claims"] == [{"name": "gpus"}]
    assert set(container["resources"]["limits"]) == {"cpu", "memory"}


def test_without_a_claim_template_the_test_says_what_the_pool_lacks(ground: Ground):
    row = in_pool(ground)
    Node.objects.filter(pk=row.pk).update(allocatable={"gpu.nvidia.com": row.gpu_allocatable})
    operation = tested(ground)

    assert "names no ResourceClaimTemplate" in node(operation).reason
    assert any("names no ResourceClaimTemplate" in each for each in operation.preview["warnings"])
    assert not NodeTestJob.objects.exists()


@pytest.mark.parametrize(("kind", "key"), [("test", "dcgm"), ("logs", "debug"), ("debug", "debug")])
def test_each_node_has_the_image_of_its_pool_and_one_without_fails_alone(ground: Ground, settings, kind, key):
    settings.TEST_IMAGES = {}
    other, lacking = Node.objects.filter(is_gpu_node=True).exclude(name=CANARY)[:2]
    in_pool(ground, test_images=f"{key}={IMAGE}")
    a_pool(ground.cluster, "other", test_images=f"{key}=registry.example.com/other:1").nodes.add(other)
    nodes = CANARY, other.name, lacking.name
    rounds(ground, begin(ground, "quarantine", *nodes, typed_count=3))
    operation = rounds(ground, begin(ground, kind, *nodes, options={"test": "dcgm-3"} if kind == "test" else {}), 2)

    images = {job["spec"]["template"]["spec"]["containers"][0]["image"] for job in jobs(ground)}
    states = {each.node_name: (each.state, each.reason) for each in operation.nodes.all()}
    assert images == {IMAGE, "registry.example.com/other:1"}
    assert states[lacking.name][0] == "failed"
    assert f"{key}. Set one." in states[lacking.name][1]
    assert {states[name][0] for name in nodes[:2]} == {"running"}
    assert [each for each in operation.preview["warnings"] if each.startswith(f"No image for {lacking.name}: ")]


def test_a_node_without_an_image_of_the_test_is_refused(ground: Ground, settings):
    settings.TEST_IMAGES = {}
    in_pool(ground, test_images="nccl=x")
    with pytest.raises(BadOperation, match="Name an image"):
        begin(ground, "test", CANARY, options={"test": "dcgm-3"})


def test_a_pool_may_be_stricter_than_the_test():
    cluster = a_cluster()
    nodes = [a_node(cluster, f"gpu-{number}", gpu_product="H200") for number in range(7)]
    pool = a_pool(cluster, "strict")
    pool.nodes.add(*nodes)
    operation = an_operation(cluster)
    rows = [
        NodeTestJob.objects.create(
            operation=operation, node_uid=one.uid, node_name=one.name, namespace="x", image="x", amount=8, test="nccl",
            resource="nvidia.com/gpu", command="all_reduce_perf", gpu_product="H200", intended_at=NOON, deadline_s=60,
            outcome="passed", told_at=NOON - timedelta(hours=1), gone_at=NOON,
            numbers={"average_bus_bandwidth.bandwidth": 100.0},
        )
        for one in nodes
    ]  # fmt: skip

    usual = thresholds_of(rows[0], now=NOON)
    a_pool(cluster, "lenient", test_worse_percent=50).nodes.add(*nodes)
    pool.test_worse_percent = 2
    pool.save()
    strict = thresholds_of(rows[0], now=NOON)

    assert [round(each.limit or 0) for each in (*usual, *strict)] == [90, 98]
