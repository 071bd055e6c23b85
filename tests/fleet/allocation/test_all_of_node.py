"""A pod that has every GPU of its node has each of them; one that may not have every one is told of none."""

import pytest

from fleet.allocation.allocations import AllocationSource
from fleet.allocation.gpu_holders import allocations_on
from health.inbox.queries import impacts_of
from tests import make
from tests.callers import calling
from tests.make import NOON
from tests.pages import page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite]
GPU = "nvidia.com/gpu"


def allocated(node):
    return allocations_on([node], now=NOON)[node.pk]


def who(node) -> list[list[str]]:
    return [[one.pod.name for one in board.allocations] for board in allocated(node).boards]


def test_who_asks_for_all_has_each_of_them():
    node = make.a_node(make.a_cluster(), gpus=8)
    make.a_pod(node, "train", gpus=8)

    found = allocated(node)

    assert who(node) == [["train"]] * 8
    assert found.unplaced == ()
    assert {one.source for board in found.boards for one in board.allocations} == {AllocationSource.COUNT}


def test_what_names_some_of_them_stays_their_word():
    node = make.a_node(make.a_cluster(), gpus=3)
    pod = make.a_pod(node, "train", gpus=3)
    make.a_reading(node, make.a_device_told(0, pod), make.a_device_told(1, pod), make.a_device_told(2))

    source = [[one.source for one in board.allocations] for board in allocated(node).boards]

    assert source == [[AllocationSource.METRICS], [AllocationSource.METRICS], [AllocationSource.COUNT]]


@pytest.mark.parametrize(
    "given",
    [
        {"physical_whole": 9},  # one is lost: the rest are numbered anew, or not
        {"layout": "gpu=whole/time-slicing*1", "physical_whole": 0, "physical_time_slicing": 8},
        {"capacity": {GPU: 8, "nvidia.com/mig-1g.10gb": 7}},
    ],
)
def test_of_a_node_that_is_not_whole_nothing_is_deduced(given):
    node = make.a_node(make.a_cluster(), gpus=8, **given)
    make.a_pod(node, "train", gpus=8)

    assert not any(who(node))
    assert len(allocated(node).unplaced) == 1


FALLEN = {"gpu_allocatable": 7}
FORGOTTEN = {"gpu_capacity": 7, "gpu_allocatable": 7}  # its device plugin started again since


@pytest.mark.parametrize("given", [FALLEN, FORGOTTEN])
def test_who_had_all_of_them_has_the_one_that_fell_off_the_bus(given):
    node = make.a_node(make.a_cluster(), gpus=8, **given)
    pod = make.a_pod(node, "train", gpus=8, started_at=NOON)
    make.a_reading(node, *(make.a_device_told(index, pod) for index in range(8) if index != 3))

    assert who(node) == [["train"]] * 8
    assert allocated(node).unplaced == ()


def test_who_is_not_started_may_get_none_of_a_node_that_lost_one():
    """Its kubelet rejects it, if it sees fewer GPUs."""
    node = make.a_node(make.a_cluster(), gpus=8, **FALLEN)
    make.a_pod(node, "train", gpus=8)

    assert not any(who(node))


@pytest.mark.parametrize("other", [{"gpus": 1}, {"gpus": 0, "claims": ["a-gpu"]}])
def test_beside_another_nothing_is_deduced(other):
    """One of them is on its way out, or waits."""
    node = make.a_node(make.a_cluster(), gpus=8)
    make.a_pod(node, "train", gpus=8)
    make.a_pod(node, "other", **other)

    assert not any(who(node))


def test_who_has_fewer_or_gives_its_own_away_has_none_that_is_known():
    node = make.a_node(make.a_cluster(), gpus=2)
    make.a_pod(node, "train", gpus=1)
    alone = make.a_node(make.a_cluster(), gpus=1)
    make.a_pod(alone, "reservation", gpus=1, labels={"runai-gpu-group": "a"})

    assert who(node) == [[], []]
    assert who(alone) == [[]]


@pytest.mark.parametrize("allocatable", [2, 1])
def test_page_rest_and_impact_have_it(allocatable: int):
    cluster = make.a_cluster("prod")
    node = make.a_node(cluster, "gpu-1", gpus=2, gpu_allocatable=allocatable)
    make.a_pod(node, "train", gpus=2, started_at=NOON)
    ada = make.a_user("ada", role="viewer")
    finding = make.a_finding(cluster, "GPU 1 of gpu-1", node=node)

    shown = page(visiting(ada), f"/nodes/{node.pk}/gpus/1").text
    (allocation,) = calling(ada).get(f"/api/v1/nodes/{node.pk}/gpus/1").json()["gpu"]["allocations"]

    assert "team-a/train it has all GPUs of its node" in shown
    assert "nothing tells whether" not in shown
    assert (allocation["pod"]["name"], allocation["reported_by"], allocation["is_current"]) == ("train", "count", True)
    assert "The GPU of each of these pods is unknown" not in page(visiting(ada), f"/nodes/{node.pk}").text
    assert impacts_of([finding], now=NOON)[finding.pk].sentence == "1 pod in 1 namespace has this GPU."
