"""To whom a GPU was allocated in an hour: from placements of pods, and null wherever they do not tell."""

from datetime import timedelta

import pytest

from health.sources.allocated_hours import AllocatedFor, AllocatedHour
from health.telemetry.frame import GpuDevice
from tests import make
from tests.make import NOON

pytestmark = pytest.mark.django_db
HOUR = NOON - timedelta(hours=1)
BOARD, OTHER = GpuDevice("gpu-1", 0, "GPU-0"), GpuDevice("gpu-1", 1, "GPU-1")


def at(minute: float):
    return HOUR + timedelta(minutes=minute)


@pytest.fixture
def node():
    return make.a_node(make.a_cluster(), "gpu-1", gpus=2)


def allocated(node, device=BOARD) -> AllocatedFor:
    return AllocatedHour.of(node.cluster_id, HOUR, now=NOON).by(device)


def test_what_two_have_at_once_counts_once_and_the_longest_is_named(node):
    make.a_placement(node, "train", namespace="ml", since=at(-30), until=at(20), boards=[0])
    make.a_placement(node, "chat", namespace="web", since=at(10), until=at(40), boards=[0, 1])
    make.a_placement(node, "chat-2", namespace="web", since=at(50), until=at(90), boards=[0])

    assert allocated(node) == AllocatedFor(50 * 60, "web", "Job/chat")
    assert allocated(node, OTHER) == AllocatedFor(30 * 60, "web", "Job/chat")


def test_what_nobody_has_is_nought_and_what_nothing_tells_is_null(node):
    assert allocated(node) == AllocatedFor(0.0)

    make.a_placement(node, "somewhere", since=at(0), until=at(30))

    assert allocated(node) == AllocatedFor(None)
    assert allocated(node, GpuDevice("gpu-1", 0, "GPU-0", "7")) == AllocatedFor(None)
    assert allocated(node, GpuDevice("gpu-1", None, "GPU-9")) == AllocatedFor(None)


def test_where_pods_are_not_seen_nothing_is_told(node):
    make.a_placement(node, "train", since=at(0), until=None, boards=[0])
    node.cluster.bookmarks.update(heard_at=NOON - timedelta(minutes=10))

    assert allocated(node) == AllocatedFor(None)


def test_of_a_pod_that_is_there_still_its_gpus_are_those_of_now(node):
    gpu = node.gpus.get(index=1)
    gpu.uuid = "GPU-1"
    gpu.save()
    pod = make.a_pod(node, "train", devices={"nvidia.com/gpu": ["GPU-1"]})
    make.a_placement(node, "train", since=at(15), until=None, pod_uid=pod.uid)

    assert allocated(node, OTHER) == AllocatedFor(45 * 60, "team-a", "Job/train")
    assert allocated(node) == AllocatedFor(0.0)


def test_it_was_allocated_as_long_as_anybody_saw_it(node):
    make.a_placement(node, "train", since=at(0), until=at(55), seen_until=at(20), boards=[0])

    assert allocated(node).seconds == 20 * 60


def test_what_was_last_seen_before_the_hour_may_have_had_it_or_not(node):
    make.a_placement(node, "train", since=at(-90), until=at(55), seen_until=at(-10), boards=[0])

    assert allocated(node) == allocated(node, OTHER) == AllocatedFor(None)


def test_a_board_is_known_by_its_uuid_however_its_exporter_numbers_it(node):
    node.gpus.filter(index=0).update(uuid="GPU-0")
    make.a_placement(node, "train", since=at(0), until=at(30), boards=[0])
    make.a_placement(node, "chat", since=at(0), until=at(10), boards=[1])

    assert allocated(node, GpuDevice("gpu-1", 1, "GPU-0")).seconds == 30 * 60
    assert allocated(node, GpuDevice("gpu-1", None, "GPU-0")).seconds == 30 * 60
    assert allocated(node, GpuDevice("gpu-1", 1, "GPU-1")).seconds == 10 * 60  # of that row nothing says which it is
    assert allocated(node, GpuDevice("gpu-1", 0, "GPU-1")) == AllocatedFor(None)


def test_what_another_may_have_had_for_the_rest_of_the_hour_is_null(node):
    make.a_placement(node, "somewhere", since=at(0), until=at(30))
    make.a_placement(node, "train", since=at(0), until=at(60), boards=[0])
    make.a_placement(node, "chat", since=at(0), until=at(50), boards=[1])

    assert allocated(node).seconds == 60 * 60
    assert allocated(node, OTHER) == AllocatedFor(None)


@pytest.mark.parametrize(("asked", "seconds"), [(1, 0.0), (2, None)])
def test_of_a_pod_that_has_more_gpus_than_are_told_the_others_may_be_its(node, asked, seconds):
    make.a_placement(node, "train", since=at(0), until=at(60), boards=[0], resources={"nvidia.com/gpu": asked})

    assert allocated(node).seconds == 60 * 60
    assert allocated(node, OTHER) == AllocatedFor(seconds)


def test_what_lasted_for_no_time_had_nothing(node):
    make.a_placement(node, "train", since=at(5), until=at(5), boards=[0])

    assert allocated(node) == AllocatedFor(0.0)
