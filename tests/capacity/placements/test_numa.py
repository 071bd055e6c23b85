"""The NUMA nodes of running pods, as far as a NodeResourceTopology or a ResourceSlice shows them."""

from datetime import timedelta

import pytest

from capacity.placements.numa_figures import GpuPod, NodeZones, NumaNode, numa_figures
from capacity.placements.placement_findings import (
    ACROSS_NUMA,
    CLAIMS_ACROSS_NUMA,
    claims_across_numa,
    pods_across_numa,
)
from fleet.models import Bookmark, NodeTopology, ResourceClaim, ResourceSlice
from kube.resources import NODE_TOPOLOGIES, RESOURCE_CLAIMS, RESOURCE_SLICES
from tests import make
from tests.callers import calling
from tests.make import NOON
from tests.pages import page, visiting

GPU = "nvidia.com/gpu"
LONG_AGO = NOON - timedelta(hours=1)


def zones(*available: int, of: int = 4):
    return [NumaNode({GPU: of}, {GPU: left}) for left in available]


def a_node_of(policy: str, its: list[NumaNode], *, requested: int = 0, capacity: int = 8) -> NodeZones:
    return NodeZones("a", policy, its, {GPU: capacity}, {GPU: requested})


@pytest.mark.parametrize(
    ("available", "gpus", "requested", "spans"),
    [
        ((2, 2), 4, 4, True),  # no NUMA node has four GPUs in use
        ((0, 2), 4, 6, False),  # the first may have all of them
        ((1, 3), 4, 4, True),  # three and one
        ((0, 0), 8, 8, False),  # no NUMA node has eight
        ((3, 4), 4, 4, False),  # only one GPU is counted as used yet
        ((2, 2), 4, 6, False),  # not all pods are counted yet
        ((1, 2), 4, 4, False),  # more is in use than pods request
    ],
)
def test_a_pod_spans_numa_nodes_if_none_has_its_gpus_in_use(available, gpus, requested, spans):
    node = a_node_of("none", zones(*available), requested=requested)

    found = numa_figures([node], {"a": [GpuPod("x/train", {GPU: gpus})]})

    assert [pod.name for pod in found.spanning] == (["x/train"] if spans else [])


def test_an_unhealthy_gpu_that_no_zone_has_hides_where_pods_are():
    """The pod may have all four GPUs of the first NUMA node, one of them unhealthy."""
    its = [NumaNode({GPU: 3}, {GPU: 0}), NumaNode({GPU: 4}, {GPU: 3})]

    found = numa_figures([a_node_of("none", its, requested=4)], {"a": [GpuPod("x/train", {GPU: 4})]})

    assert found.spanning == []


def test_twenty_spanning_pods_are_named_and_the_others_counted():
    pods = {"a": [GpuPod(f"x/{at}", {}, frozenset({0, 1})) for at in range(23)]}

    found = numa_figures([], pods)

    assert (len(found.named), found.unnamed) == (20, 3)


@pytest.mark.parametrize(
    ("policy", "unaligned"),
    [("none", 1), ("best-effort", 1), ("restricted", 0), ("single-numa-node", 0), ("", 0)],
)
def test_only_known_policies_without_alignment_count(policy, unaligned):
    pods = [GpuPod("x/fits", {GPU: 2}), GpuPod("x/whole-node", {GPU: 8})]

    found = numa_figures([a_node_of(policy, zones(4, 2))], {"a": pods})

    assert (found.unaligned_nodes, found.unaligned_pods, found.policies) == (unaligned, unaligned, {policy: 1})


def test_a_node_with_one_numa_node_has_nothing_to_align():
    found = numa_figures([a_node_of("none", zones(2))], {"a": [GpuPod("x/fits", {GPU: 2})]})

    assert (found.unaligned_pods, found.spanning) == (0, [])


@pytest.fixture
def bob(db):
    return make.a_user("bob", role="viewer")


@pytest.fixture
def pool(db):
    return make.a_pool(make.a_cluster("east"), "h200")


def measured(bob, pool):
    return calling(bob).get(f"/api/v1/pools/{pool.pk}/placement").json()["measures"]["numa"]


def a_topology(node, *available: int, policy: str = "none"):
    make.a_bookmark(node.cluster, NODE_TOPOLOGIES.name)
    rows = [
        {"name": f"node-{at}", "allocatable": {GPU: 4}, "available": {GPU: left}} for at, left in enumerate(available)
    ]
    NodeTopology.objects.create(
        cluster=node.cluster, uid=f"of-{node.name}", name=node.name, policy=policy, zones=rows, changed_at=NOON
    )


@pytest.mark.usefixtures("now")
def test_the_pool_and_a_finding_name_the_pods_that_span(bob, pool):
    node = make.a_node(pool.cluster, "gpu-1", pool=pool)
    a_topology(node, 2, 1)
    make.a_pod(node, "train", gpus=4, resources={GPU: 4}, started_at=LONG_AGO)
    make.a_pod(node, "small", gpus=1, resources={GPU: 1}, started_at=LONG_AGO)

    found = measured(bob, pool)

    assert found == {
        "nodes": 1, "policies": {"none": 1}, "unaligned_nodes": 1, "unaligned_pods": 1,
        "spanning": [{"name": "team-a/train", "node": "gpu-1"}], "spanning_unnamed": 0,
    }  # fmt: skip
    text = page(visiting(bob), f"/parts/pools/{pool.pk}/placement").text
    assert "team-a/train on gpu-1" in text
    assert "none: 1 node" in text
    ((subject, problem),) = pods_across_numa(pool.cluster, now=NOON)
    assert (subject, problem.evidence[0].label) == ("NUMA nodes", "team-a/train")


@pytest.mark.usefixtures("now")
def test_a_young_pod_is_not_compared(bob, pool):
    node = make.a_node(pool.cluster, "gpu-1", pool=pool)
    a_topology(node, 2, 2)
    make.a_pod(node, "train", gpus=4, resources={GPU: 4}, started_at=NOON - timedelta(minutes=1))

    assert measured(bob, pool)["spanning"] == []


@pytest.mark.usefixtures("now")
def test_a_pod_is_not_compared_with_an_older_topology(bob, pool):
    """Where the updater stopped, its objects stay."""
    node = make.a_node(pool.cluster, "gpu-1", pool=pool)
    a_topology(node, 2, 2)
    NodeTopology.objects.update(changed_at=LONG_AGO - timedelta(minutes=1))
    make.a_pod(node, "train", gpus=4, resources={GPU: 4}, started_at=LONG_AGO)

    assert measured(bob, pool)["spanning"] == []


def test_a_finding_needs_the_live_kinds_that_it_rests_on():
    assert NODE_TOPOLOGIES.name in ACROSS_NUMA.reads
    assert {RESOURCE_SLICES.name, RESOURCE_CLAIMS.name} < set(CLAIMS_ACROSS_NUMA.reads)


@pytest.mark.usefixtures("now")
@pytest.mark.parametrize("state", ["forbidden", "absent", "stale"])
def test_a_kind_that_cannot_be_read_is_not_looked_at(bob, pool, state):
    node = make.a_node(pool.cluster, "gpu-1", pool=pool)
    a_topology(node, 2, 2)
    make.a_pod(node, "train", gpus=4, resources={GPU: 4}, started_at=LONG_AGO)
    changes = {"last_seen_at": NOON - timedelta(days=2)} if state == "stale" else {"state": state}
    Bookmark.objects.filter(kind=NODE_TOPOLOGIES.name).update(**changes)

    assert measured(bob, pool) is None
    text = page(visiting(bob), f"/parts/pools/{pool.pk}/placement").text
    assert "not checked: no current NodeResourceTopology" in text
    assert "not checked: the right nodes/proxy" in text
    assert list(pods_across_numa(pool.cluster, now=NOON)) == []


@pytest.mark.usefixtures("now")
@pytest.mark.parametrize(("devices", "spans"), [(2, True), (3, False)])
def test_devices_of_claims_name_their_numa_nodes(bob, pool, devices, spans):
    """Three GPUs fit on no NUMA node of two, although its partitions and an old generation are there too."""
    node = make.a_node(pool.cluster, "gpu-1", pool=pool, gpus=0, gpu_allocatable=4)
    for kind in (RESOURCE_SLICES, RESOURCE_CLAIMS):
        make.a_bookmark(pool.cluster, kind.name)
    gpus = [{"name": f"gpu-{at}", "type": "gpu", "numa": at % 2} for at in range(4)]
    key = {"driver": "gpu.nvidia.com", "pool": "gpu-1"}
    parts = [{"name": f"gpu-{at}-mig", "type": "mig", "numa": at % 2} for at in range(4)]
    for generation, its in enumerate((gpus, gpus + parts)):
        ResourceSlice.objects.create(
            cluster=pool.cluster, uid=f"s-{generation}", name="s", node_name="gpu-1", devices=its, changed_at=NOON,
            pool_generation=generation, **key,
        )  # fmt: skip
    allocated = [{"request": "gpu", "device": f"gpu-{at}", **key} for at in range(devices)]
    ResourceClaim.objects.create(
        cluster=pool.cluster, uid="c", namespace="team-a", name="one", created_at=NOON, changed_at=NOON,
        allocated=allocated,
    )  # fmt: skip
    make.a_pod(node, "train", gpus=0, is_tenant=True, claims=["one"], started_at=LONG_AGO)

    assert [pod["name"] for pod in measured(bob, pool)["spanning"]] == (["team-a/train"] if spans else [])
    assert bool(list(claims_across_numa(pool.cluster, now=NOON))) is spans
    assert list(pods_across_numa(pool.cluster, now=NOON)) == []
