"""A healthy twin of a GPU: which it is and why, why there is none, and what differs."""

from datetime import timedelta

import pytest

from health.inbox.comparable_gpus import comparable_gpu_of
from health.sources import snapshots
from health.telemetry.snapshot import GpuDevice
from tests import make
from tests.callers import calling
from tests.health.inbox.test_comparable_nodes import like, told
from tests.make import NOON
from tests.pages import page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]


@pytest.fixture
def cluster(redis):
    return make.a_cluster("prod")


@pytest.fixture
def pool(cluster):
    return make.a_pool(cluster, "h100")


@pytest.fixture
def root():
    return make.a_user("root", role="admin")


def gpu_of(node, index: int = 0):
    return type(node.gpus.first()).objects.at(node.pk, index).get()


def comparable(gpu, root):
    return comparable_gpu_of(gpu, root, now=NOON)


def test_is_the_first_of_its_node_of_which_no_finding_is_open(cluster, pool, root):
    node = like(cluster, "gpu-1", pool, gpus=4)
    make.a_finding(cluster, "GPU 0 of gpu-1", node=node)
    make.a_finding(cluster, "GPU 1 of gpu-1, slice 3 (1g.10gb)", node=node, state="confirming", opened_at=None)
    make.a_finding(cluster, "GPU 2 of gpu-1", node=node, state="resolved", resolved_at=NOON)

    found = comparable(gpu_of(node, 0), root)

    assert found.gpu.index == 2
    assert found.reason == "It has no open finding, is on the same node. It is the first of 2 such GPUs."


def test_one_that_has_telemetry_goes_first_and_then_one_that_the_same_pod_holds(cluster, pool, root):
    node = like(cluster, "gpu-1", pool, gpus=4)
    for gpu in node.gpus.all():
        gpu.uuid = f"GPU-{gpu.index}"
        gpu.save()
    make.a_pod(node, "train", gpus=2, devices={"nvidia.com/gpu": ["GPU-0", "GPU-3"]})

    assert comparable(gpu_of(node, 0), root).gpu.index == 3
    assert comparable(gpu_of(node, 0), root).reason == (
        "It has no open finding, is on the same node, and the same pod has both."
    )

    make.a_source(cluster, exported=["engine_active_ratio"])
    devices = [GpuDevice("gpu-1", number, f"GPU-{number}") for number in (0, 2)]
    snapshots.store(cluster.pk, told(*devices, engine_active_ratio=[0.5, 0.5]))
    assert comparable(gpu_of(node, 0), root).gpu.index == 2
    assert (
        comparable(gpu_of(node, 0), root).reason
        == "It has no open finding, is on the same node, and it reports telemetry."
    )
    devices = [GpuDevice("gpu-1", number, f"GPU-{number}") for number in (0, 1, 2)]
    snapshots.store(cluster.pk, told(*devices, engine_active_ratio=[0.5] * 3))
    assert comparable(gpu_of(node, 0), root).reason == (
        "It has no open finding, is on the same node, and it reports telemetry. It is the first of 2 such GPUs."
    )
    devices.append(GpuDevice("gpu-1", 3, "GPU-3"))
    snapshots.store(cluster.pk, told(*devices[:2], devices[3], engine_active_ratio=[0.5] * 3))
    assert comparable(gpu_of(node, 0), root).reason == (
        "It has no open finding, is on the same node, it reports telemetry, and the same pod has both."
    )


def test_is_one_of_the_nodes_twin_where_none_of_its_own_node_is_well(cluster, pool, root):
    node = like(cluster, "gpu-1", pool, gpus=2, kernel="6.8")
    other = like(cluster, "gpu-2", pool, gpus=2, kernel="6.9")
    make.a_finding(cluster, "GPU 1 of gpu-1", node=node)

    found = comparable(gpu_of(node, 0), root)

    assert (found.gpu.node, found.gpu.index) == (other, 0)
    assert found.reason.startswith(
        "Each of the 1 other GPU of the node has an open finding. So a GPU of gpu-2, the comparable node, is used."
    )
    assert ("Its node: Kernel", "6.8", "6.9") in [(one.title, one.here, one.there) for one in found.properties]


def test_says_what_lacks_where_there_is_none(cluster, pool, root):
    node = like(cluster, "gpu-1", pool, gpus=1)

    found = comparable(gpu_of(node), root)

    assert found.gpu is None
    assert found.reason.startswith("The node has no other GPU of this product. No comparable node exists")


def test_a_cluster_that_was_never_heard_has_none(redis, root):
    node = like(make.a_cluster("new", seen_at=None), "gpu-1", gpus=2)

    assert (
        "The cluster was never observed, so the healthy GPUs of the node are unknown"
        in comparable(gpu_of(node), root).reason
    )


def test_of_a_cluster_that_nobody_sees_now_it_says_that_it_was(redis, root):
    node = like(make.a_cluster("away", seen_at=NOON - timedelta(days=2)), "gpu-1", gpus=2)

    assert "It had no open finding when its cluster was last observed" in comparable(gpu_of(node), root).reason


def test_what_is_measured_is_each_ones_own(cluster, pool, root):
    node = like(cluster, "gpu-1", pool, gpus=2)
    make.a_source(cluster, exported=["temperature_celsius"])
    devices = [GpuDevice("gpu-1", number, f"GPU-{number}") for number in range(2)]
    snapshots.store(cluster.pk, told(*devices, temperature_celsius=[81.0, 60.0]))

    said = {one.title: (one.here, one.there) for one in comparable(gpu_of(node), root).measured}

    assert said["Temperature now"] == ("81 °C", "60 °C")
    assert said["Power now"] == ("not exported", "not exported")
    assert said["Hours with findings"] == ("0", "0")


def test_page_and_rest_say_the_same_and_a_stranger_nothing(cluster, pool, root):
    node = like(cluster, "gpu-1", pool, gpus=2)

    shown = page(visiting(root), f"/parts/nodes/{node.pk}/gpus/0/comparable")
    said = calling(root).get(f"/api/v1/nodes/{node.pk}/gpus/0/comparable").json()

    assert said["gpu"] == {"node": {"id": node.pk, "name": "gpu-1"}, "index": 1}
    assert said["reason"] in shown.text
    assert f"/nodes/{node.pk}/gpus/1" in shown.links
    assert calling(make.a_user("eve")).get(f"/api/v1/nodes/{node.pk}/gpus/0/comparable").status_code == 404


def test_costs_no_more_with_more_gpus_and_nodes(cluster, pool, root, django_assert_max_num_queries):
    node = like(cluster, "gpu-1", pool, gpus=8)
    for index in range(1, 8):
        make.a_finding(cluster, f"GPU {index} of gpu-1", node=node)
    for number in range(2, 12):
        like(cluster, f"gpu-{number}", pool)

    with django_assert_max_num_queries(36):
        comparable(gpu_of(node), root)
