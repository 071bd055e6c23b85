"""Which pod has which GPU, where something says so."""

import pytest

from fleet.allocation.allocations import AllocationSource
from fleet.allocation.gpu_holders import allocations_on
from fleet.models import Gpu, ResourceClaim, ResourceSlice
from tests.make import NOON, a_cluster, a_node, a_pod, a_user
from tests.pages import page, visiting

pytestmark = pytest.mark.django_db
GPU = "nvidia.com/gpu"


def a_slice(node, *devices, generation=1):
    return ResourceSlice.objects.create(
        cluster=node.cluster, uid=f"slice-{node.name}", name=f"slice-{node.name}", changed_at=NOON,
        driver="gpu.nvidia.com", pool=node.name, pool_generation=generation, node_name=node.name, devices=list(devices),
    )  # fmt: skip


def a_device(number: int, **more):
    return {"name": f"gpu-{number}", "type": "gpu", "uuid": f"GPU-{number}", "memory_bytes": 80 * 2**30, **more}


def a_claim(node, name: str, *devices: str, admin: bool = False):
    allocated = [
        {"request": "gpu", "driver": "gpu.nvidia.com", "pool": node.name, "device": device, "admin": admin}
        for device in devices
    ]
    return ResourceClaim.objects.create(
        cluster=node.cluster, uid=f"claim-{name}", namespace="team-a", name=name, created_at=NOON, changed_at=NOON,
        allocated=allocated,
    )  # fmt: skip


def a_dra_node(gpus: int = 2):
    node = a_node(a_cluster(), gpus=gpus)
    for gpu in node.gpus.all():
        Gpu.objects.filter(pk=gpu.pk).update(uuid=f"GPU-{gpu.index}")
    a_slice(node, *(a_device(number) for number in range(gpus)))
    return node


def who(node) -> dict[str, list[str]]:
    return {
        board.uuid: [one.pod.name for one in board.allocations]
        for board in allocations_on([node], now=NOON)[node.pk].boards
    }


def test_a_claim_names_the_gpu():
    node = a_dra_node()
    a_claim(node, "one", "gpu-1")
    a_pod(node, "train", gpus=0, claims=["one"])

    assert who(node) == {"GPU-0": [], "GPU-1": ["train"]}
    assert allocations_on([node], now=NOON)[node.pk].unplaced == ()


def test_pods_that_share_a_claim_are_all_on_its_gpu():
    node = a_dra_node()
    a_claim(node, "one", "gpu-0")
    a_pod(node, "a", gpus=0, claims=["one"])
    a_pod(node, "b", gpus=0, claims=["one"])

    assert who(node)["GPU-0"] == ["a", "b"]


def test_access_for_administration_is_told_from_holding():
    node = a_dra_node()
    a_claim(node, "watch", "gpu-0", admin=True)
    a_pod(node, "monitor", gpus=0, claims=["watch"])

    (allocation,) = allocations_on([node], now=NOON)[node.pk].boards[0].allocations

    assert (allocation.only_looks, allocation.source) == (True, AllocationSource.CLAIM)


def test_a_claim_that_is_not_seen_is_said_to_be_unknown():
    node = a_dra_node()
    a_pod(node, "train", gpus=0, claims=["gone"])

    (one,) = allocations_on([node], now=NOON)[node.pk].unplaced

    assert (one.claim, one.number) == ("gone", None)


def test_a_slice_is_allocated_on_the_board_it_is_cut_from():
    node = a_dra_node()
    ResourceSlice.objects.update(
        devices=[a_device(0), {"name": "gpu-1-mig-0", "type": "mig", "uuid": "MIG-a", "parent_uuid": "GPU-1",
                               "profile": "1g.10gb"}]
    )  # fmt: skip
    a_claim(node, "part", "gpu-1-mig-0")
    a_pod(node, "small", gpus=0, claims=["part"])

    board = allocations_on([node], now=NOON)[node.pk].boards[1]

    assert [(one.pod.name, one.profile) for one in board.allocations] == [("small", "1g.10gb")]


def test_the_kubelet_names_the_gpu():
    node = a_node(a_cluster(), gpus=3)
    a_pod(node, "train", gpus=2, resources={GPU: 2}, devices={GPU: ["GPU-a", "GPU-b"]})

    allocated = allocations_on([node], now=NOON)[node.pk]

    assert [(board.uuid, [one.pod.name for one in board.allocations]) for board in allocated.boards] == [
        ("GPU-a", ["train"]),
        ("GPU-b", ["train"]),
        ("", []),
    ]
    assert {board.index for board in allocated.boards} == {None}  # a UUID tells no number


def test_a_slice_of_an_old_driver_names_its_board():
    node = a_node(a_cluster(), gpus=1)
    mig = "nvidia.com/mig-1g.10gb"
    a_pod(node, "small", gpus=0, resources={mig: 1}, devices={mig: ["MIG-GPU-1a-2b/7/0"]})

    (board,) = allocations_on([node], now=NOON)[node.pk].boards

    assert (board.uuid, board.allocations[0].profile) == ("GPU-1a-2b", "1g.10gb")


def test_what_nothing_names_is_counted():
    node = a_node(a_cluster(), layout="gpu=whole/time-slicing*4")
    a_pod(node, "infer", resources={GPU: 2})
    a_pod(node, "done", resources={GPU: 1}, phase="Succeeded")

    allocated = allocations_on([node], now=NOON)[node.pk]

    assert [(one.pod.name, one.resource, one.number) for one in allocated.unplaced] == [("infer", GPU, 2)]
    assert not any(board.allocations for board in allocated.boards)


def test_of_a_gpu_beside_unplaced_pods_nobody_knows_whether_it_is_held():
    node = a_node(a_cluster(), gpus=2)
    free = allocations_on([node], now=NOON)[node.pk].of(node.gpus.get(index=1))
    a_pod(node, "train", resources={GPU: 1})

    taken = allocations_on([node], now=NOON)[node.pk].of(node.gpus.get(index=1))

    assert (free.allocations, taken.allocations) == ((), None)
    assert ([one.pod.name for one in taken.perhaps], taken.is_probable) == (["train"], False)


def test_the_only_pod_without_a_named_gpu_probably_has_the_only_one_without_a_user():
    node = a_node(a_cluster(), gpus=2)
    node.gpus.filter(index=0).update(uuid="GPU-a")
    a_pod(node, "named", devices={GPU: ["GPU-a"]})
    pod = a_pod(node, "train", resources={GPU: 1})

    text = page(visiting(a_user(role="viewer")), f"/nodes/{node.pk}/gpus/1").text

    assert f"Probably {pod.namespace}/train . No source names the GPUs that it has." in text


@pytest.mark.parametrize("number", [1, 5])
def test_many_nodes_cost_the_queries_of_one(number, django_assert_num_queries):
    cluster = a_cluster()
    nodes = [a_node(cluster) for _ in range(number)]
    for node in nodes:
        a_claim(node, f"claim-{node.name}", "gpu-0")
        a_slice(node, a_device(0))
        a_pod(node, gpus=0, claims=[f"claim-{node.name}"])

    with django_assert_num_queries(5):
        allocations_on(nodes, now=NOON)


def test_the_same_names_in_two_clusters_are_two_gpus():
    here, there = a_node(a_cluster(), "gpu-001", gpus=1), a_node(a_cluster(), "gpu-001", gpus=1)
    for node in (here, there):
        a_slice(node, a_device(0, uuid=f"GPU-{node.cluster_id}"))
        node.gpus.update(uuid=f"GPU-{node.cluster_id}")
    a_claim(here, "one", "gpu-0")
    a_pod(here, "train", gpus=0, claims=["one"])
    a_pod(there, "other", gpus=0, claims=["one"])

    allocated = allocations_on([here, there], now=NOON)

    assert [one.pod.name for one in allocated[here.pk].boards[0].allocations] == ["train"]
    assert allocated[there.pk].boards[0].allocations == ()
