"""Nodes whose GPUs are offered by a DRA driver: no device plugin, and often no labels."""

import msgspec
import pytest

from fleet.models import Cluster, Gpu, Node, NodeEvent
from fleet.states.node import NodeState
from kube.structs.dra import ClaimSeen, SliceSeen
from tests.fleet.documents import GPU_LABELS, a_node_seen, a_pod_seen

SLICES, CLAIMS = "resourceslices.resource.k8s.io", "resourceclaims.resource.k8s.io"


def a_gpu(number: int, **more):
    attributes = {
        "type": {"string": "gpu"},
        "uuid": {"string": f"GPU-{number}"},
        "productName": {"string": "NVIDIA H100 80GB HBM3"},
        "driverVersion": {"version": "580.95.5"},
    }
    return {"name": f"gpu-{number}", "attributes": attributes, "capacity": {"memory": {"value": "81559Mi"}}, **more}


def a_mig_slice(number: int, parent: int, profile: str = "1g.10gb", *, uuid: str = ""):
    attributes = {"type": {"string": "mig"}, "profile": {"string": profile}, "parentUUID": {"string": f"GPU-{parent}"}}
    attributes |= {"uuid": {"string": uuid}} if uuid else {}
    return {"name": f"gpu-{parent}-mig-{number}", "attributes": attributes}


def a_slice(devices, *, node: str = "gpu-001", generation: int = 1, name: str = "slice", of: int = 0, pool: str = ""):
    """Returns a slice of a pool of `of` slices; 0: it does not say."""
    spec = {"driver": "gpu.nvidia.com", "nodeName": node, "devices": devices}
    spec |= {"pool": {"name": pool or node, "generation": generation, "resourceSliceCount": of}}
    return msgspec.convert({"metadata": {"name": name, "uid": f"uid-of-{name}"}, "spec": spec}, SliceSeen)


def a_claim(name: str, devices, *, pods=("train-0",), node: str = "gpu-001", admin: bool = False) -> ClaimSeen:
    results = [
        {"request": "gpu", "driver": "gpu.nvidia.com", "pool": node, "device": device, "adminAccess": admin}
        for device in devices
    ]
    reserved = [{"resource": "pods", "name": pod, "uid": f"uid-of-{pod}"} for pod in pods]
    document = {
        "metadata": {"name": name, "namespace": "research", "uid": f"uid-of-{name}"},
        "status": {"allocation": {"devices": {"results": results}}, "reservedFor": reserved},
    }
    return msgspec.convert(document, ClaimSeen)


def a_bare_node(name: str = "gpu-001"):
    return a_node_seen(name, labels={}, resources={})


def a_claiming_pod(name: str, *claims: str):
    seen = a_pod_seen(name, gpus=0)
    references = [{"name": claim, "resourceClaimName": claim} for claim in claims]
    return msgspec.convert(
        msgspec.to_builtins(seen) | {"spec": msgspec.to_builtins(seen.spec) | {"resourceClaims": references}},
        type(seen),
    )


def node() -> Node:
    return Node.objects.get(name="gpu-001")


def test_a_slice_makes_a_gpu_node(mirror):
    mirror.list("nodes", [a_bare_node()])
    assert not node().is_gpu_node

    mirror.list(SLICES, [a_slice([a_gpu(0), a_gpu(1)])])

    row = node()
    assert (row.is_gpu_node, row.gpu_vendor, row.gpu_product) == (True, "nvidia", "NVIDIA-H100-80GB-HBM3")
    assert (row.gpu_capacity, row.gpu_allocatable, row.gpu_expected) == (2, 2, 2)
    assert (row.driver_version, row.driver_unknown_since, row.gpu_memory_mib) == ("580.95.05", None, 81559)
    assert list(Gpu.objects.values_list("index", "uuid", "memory_mib")) == [(0, "GPU-0", 81559), (1, "GPU-1", 81559)]


def test_it_stays_one_when_the_node_itself_changes(mirror):
    mirror.list(SLICES, [a_slice([a_gpu(0)])])
    mirror.list("nodes", [a_bare_node()])

    mirror.see("nodes", a_node_seen(labels={"team": "a"}, resources={}))
    mirror.flush()

    assert (node().is_gpu_node, node().gpu_capacity, node().driver_version) == (True, 1, "580.95.05")


def test_a_lost_device_is_missed(mirror, told):
    mirror.list("nodes", [a_bare_node()])
    mirror.list(SLICES, [a_slice([a_gpu(0), a_gpu(1)])])
    told.clear()

    mirror.see(SLICES, a_slice([a_gpu(0)], generation=2))
    mirror.flush()

    assert (node().gpu_capacity, node().gpu_expected, node().gpus_missing) == (1, 2, 1)
    assert [trial_summary[:2] for trial_summary in told[0]["nodes"]] == [[node().pk, NodeState.GPUS_MISSING]]
    assert NodeEvent.objects.filter(kind="capacity").exists()


def test_a_node_whose_slices_are_away_still_has_gpus(mirror):
    mirror.list("nodes", [a_bare_node()])
    mirror.list(SLICES, [a_slice([a_gpu(0)])])

    mirror.see(SLICES, a_slice([a_gpu(0)]), is_gone=True)
    mirror.flush()

    row = node()
    assert (row.is_gpu_node, row.gpus_missing, row.driver_version) == (True, 1, "580.95.05")
    assert row.driver_unknown_since is not None


def test_a_tainted_device_cannot_be_allocated(mirror):
    mirror.list("nodes", [a_bare_node()])

    taint = {"key": "gpu.nvidia.com/xid", "value": "79", "effect": "NoSchedule"}
    mirror.list(SLICES, [a_slice([a_gpu(0), a_gpu(1, taints=[taint])])])

    assert (node().gpu_capacity, node().gpu_allocatable, node().gpus_missing) == (2, 1, 1)


def test_a_gpu_that_a_plugin_offers_too_is_one_gpu(mirror):
    mirror.list("nodes", [a_node_seen(gpus=2, labels=GPU_LABELS | {"nvidia.com/gpu.count": "2"})])

    mirror.list(SLICES, [a_slice([a_gpu(0), a_gpu(1)])])

    assert (node().gpu_capacity, node().gpu_expected) == (2, 2)
    assert node().driver_version == "580.95.05"  # the label's, which has not lost its zero
    assert Gpu.objects.count() == 2


def test_what_could_be_cut_is_no_slice_yet(mirror):
    mirror.list("nodes", [a_bare_node()])

    cut = [a_mig_slice(0, 1, uuid="MIG-a"), a_mig_slice(1, 1, uuid="MIG-b")]
    mirror.list(SLICES, [a_slice([a_gpu(0), a_mig_slice(0, 0), *cut])])

    row = node()
    assert (row.gpu_capacity, row.slices_expected) == (1, 2)
    assert row.capacity == {"gpu.nvidia.com": 1, "gpu.nvidia.com/mig-1g.10gb": 2}
    assert sorted(Gpu.objects.values_list("uuid", flat=True)) == ["GPU-0", "GPU-1"]


def test_only_the_newest_generation_of_a_pool_counts(mirror):
    mirror.list("nodes", [a_bare_node()])

    mirror.list(SLICES, [a_slice([a_gpu(0), a_gpu(1)], name="old"), a_slice([a_gpu(0)], generation=2, name="new")])

    assert node().gpu_capacity == 1


def test_no_gpu_of_an_incomplete_pool_is_allocatable(mirror):
    Cluster.objects.update(server_version="v1.35.0")
    mirror.list("nodes", [a_bare_node()])
    mirror.list(SLICES, [a_slice([a_gpu(0)], name="one", of=2), a_slice([a_gpu(1)], name="two", of=2)])
    complete = node().gpu_allocatable

    mirror.see(SLICES, a_slice([a_gpu(0)], name="one", of=2, generation=2))
    mirror.flush()
    partial = node()
    mirror.see(SLICES, a_slice([a_gpu(1)], name="two", of=2, generation=2))
    mirror.flush()

    assert (complete, partial.gpu_capacity, partial.gpu_allocatable, partial.gpus_missing) == (2, 1, 0, 2)
    assert (node().gpu_capacity, node().gpu_allocatable) == (2, 2)


@pytest.mark.parametrize("version", ["v1.34.9", ""])
def test_before_1_35_the_scheduler_allocates_from_an_incomplete_pool(mirror, version):
    Cluster.objects.update(server_version=version)
    mirror.list("nodes", [a_bare_node()])

    mirror.list(SLICES, [a_slice([a_gpu(0)], of=2)])

    assert node().gpu_allocatable == 1


def test_the_slices_of_a_pool_may_be_on_several_nodes(mirror):
    Cluster.objects.update(server_version="v1.36.4")
    mirror.list("nodes", [a_bare_node(), a_bare_node("gpu-002")])
    first = a_slice([a_gpu(0)], name="one", of=2, pool="both")
    mirror.list(SLICES, [first])
    partial = node().gpu_allocatable

    mirror.see(SLICES, a_slice([a_gpu(1)], name="two", node="gpu-002", of=2, pool="both"))
    mirror.flush()

    assert (partial, node().gpu_allocatable, Node.objects.get(name="gpu-002").gpu_allocatable) == (0, 1, 1)


@pytest.mark.parametrize("claims_first", [True, False])
def test_what_claims_hold_is_allocated(mirror, claims_first):
    mirror.list("nodes", [a_bare_node()])
    mirror.list(SLICES, [a_slice([a_gpu(0), a_gpu(1), a_gpu(2)])])
    claims = [a_claim("two", ["gpu-0", "gpu-1"]), a_claim("same", ["gpu-1"]), a_claim("look", ["gpu-2"], admin=True)]
    pods = [a_claiming_pod("train-0", "two", "look"), a_claiming_pod("train-1", "same")]

    for kind, seen in [(CLAIMS, claims), ("pods", pods)][:: 1 if claims_first else -1]:
        mirror.list(kind, seen)

    assert (node().gpu_allocated, node().requested) == (2, {"gpu.nvidia.com": 2})


def test_what_a_claim_gives_back_is_free(mirror):
    mirror.list("nodes", [a_bare_node()])
    mirror.list(SLICES, [a_slice([a_gpu(0)])])
    mirror.list("pods", [a_claiming_pod("train-0", "one")])
    mirror.list(CLAIMS, [a_claim("one", ["gpu-0"])])
    taken = node().gpu_allocated

    mirror.see(CLAIMS, a_claim("one", []))
    mirror.flush()

    assert (taken, node().gpu_allocated, node().requested) == (1, 0, {})


def test_what_is_held_is_counted_when_the_slices_come_last(mirror):
    mirror.list("nodes", [a_bare_node()])
    mirror.list("pods", [a_claiming_pod("train-0", "gpus")])
    mirror.list(CLAIMS, [a_claim("gpus", ["gpu-0"])])

    mirror.list(SLICES, [a_slice([a_gpu(0), a_gpu(1)])])

    assert node().gpu_allocated == 1


def test_the_same_device_name_in_two_pools_is_two_devices(mirror):
    mirror.list("nodes", [a_bare_node()])
    one, other = ([a_mig_slice(0, parent, uuid=f"MIG-{parent}")] for parent in (0, 0))
    other[0]["attributes"]["uuid"] = {"string": "MIG-1"}
    second = a_slice(other, name="other")
    pool = msgspec.structs.replace(second.spec.pool, name="other")

    mirror.list(
        SLICES, [a_slice(one), msgspec.structs.replace(second, spec=msgspec.structs.replace(second.spec, pool=pool))]
    )

    assert node().slices_allocatable == 2
