"""To whom a GPU was allocated in an hour: from placements of pods, and null wherever they do not tell."""

from datetime import timedelta

import pytest

from health.inbox.hours import NodeHour
from health.models import GpuHour
from health.sources.allocated_hours import AllocatedFor, AllocatedHour
from health.telemetry.snapshot import GpuDevice
from tests import make
from tests.make import NOON

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite]
HOUR = NOON - timedelta(hours=1)
BOARD, OTHER = GpuDevice("gpu-1", 0, "GPU-0"), GpuDevice("gpu-1", 1, "GPU-1")
SLICE, NEXT = GpuDevice("gpu-1", 0, "GPU-0", "7"), GpuDevice("gpu-1", 0, "GPU-0", "8")
CUT = {"nvidia.com/mig-1g.10gb": 1}


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
    node.cluster.pod_placements.update(top_owner="JobSet/llama")
    assert allocated(node) == AllocatedFor(50 * 60, "web", "JobSet/llama")


def test_what_nobody_has_is_nought_and_what_nothing_tells_is_null(node):
    assert allocated(node) == AllocatedFor(0.0)

    make.a_placement(node, "somewhere", since=at(0), until=at(30))

    assert allocated(node) == AllocatedFor(None)
    assert allocated(node, SLICE) == AllocatedFor(0.0), "what asks for a whole GPU has no slice"
    assert allocated(node, GpuDevice("gpu-1", None, "GPU-9")) == AllocatedFor(None)


def test_where_pods_are_not_seen_nothing_is_told(node):
    make.a_placement(node, "train", since=at(0), until=None, boards=[0])
    node.cluster.bookmarks.update(last_seen_at=NOON - timedelta(minutes=10))

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


def test_a_slice_is_allocated_to_its_own_pods_and_its_board_to_all_of_them(node):
    make.a_placement(node, "chat", since=at(0), until=at(30), boards=[0], slices=[[0, "7"]], resources=CUT)
    make.a_placement(node, "rank", since=at(20), until=at(40), boards=[0], slices=[[0, "8"]], resources=CUT)

    assert allocated(node, SLICE) == AllocatedFor(30 * 60, "team-a", "Job/chat")
    assert allocated(node, NEXT) == AllocatedFor(20 * 60, "team-a", "Job/rank")
    assert allocated(node, GpuDevice("gpu-1", 0, "GPU-0", "9")) == AllocatedFor(0.0)
    assert allocated(node) == AllocatedFor(40 * 60, "team-a", "Job/chat")
    assert allocated(node, OTHER) == AllocatedFor(0.0)


def test_of_a_pod_whose_slice_nothing_tells_each_slice_of_its_node_may_be_its(node):
    make.a_placement(node, "chat", since=at(0), until=at(30), boards=[0], resources=CUT)
    make.a_placement(node, "rank", since=at(0), until=at(60), boards=[0], slices=[[0, "8"]], resources=CUT)

    assert allocated(node, SLICE) == AllocatedFor(None)
    assert allocated(node, NEXT).seconds == 60 * 60
    assert allocated(node).seconds == 60 * 60, "of the board it is told"


@pytest.mark.parametrize(
    ("resources", "seconds"),
    [
        ({"nvidia.com/mig-1g.10gb": 2}, None),  # the other may be that one
        ({"nvidia.com/mig-1g.10gb.shared": 2}, 0.0),  # two shares may be of one slice
        ({}, 0.0),  # by a claim, and one is told
    ],
)
def test_of_a_pod_with_more_slices_than_are_told_the_others_may_be_its(node, resources, seconds):
    make.a_placement(node, "chat", since=at(0), until=at(60), boards=[0], slices=[[0, "7"]], resources=resources)

    assert allocated(node, NEXT) == AllocatedFor(seconds)
    assert allocated(node, SLICE).seconds == 60 * 60


def test_what_a_claim_gave_may_be_a_slice_where_nothing_tells(node):
    make.a_placement(node, "chat", since=at(0), until=at(30), boards=[0], resources={})

    assert allocated(node, SLICE) == AllocatedFor(None)


def test_of_a_pod_that_is_there_still_its_slice_is_the_one_its_exporter_names_it_on(node):
    node.gpus.filter(index=0).update(uuid="GPU-0")
    told, seen = (make.a_pod(node, name, resources=CUT) for name in ("told", "seen"))
    make.a_reading(
        node, make.a_device_told(0, told, gi_id="7", profile="1g.10gb"),
        make.a_device_told(0, seen, gi_id="8", profile="1g.10gb"),
    )  # fmt: skip
    for pod in (told, seen):
        make.a_placement(node, pod.name, since=at(15), until=None, pod_uid=pod.uid, resources=CUT)

    assert allocated(node, SLICE) == AllocatedFor(45 * 60, "team-a", "Job/told")
    assert allocated(node, NEXT) == AllocatedFor(45 * 60, "team-a", "Job/seen")
    assert allocated(node).seconds == 45 * 60


def test_whole_shared_and_cut_gpus_come_to_what_there_is_of_them(node):
    """What the hours of their nodes add up: a GPU is one, however many had it."""
    node.gpus.create(index=2, product="H100")
    make.a_placement(node, "train", since=at(0), until=at(60), boards=[1])
    for name, since, until in (("a", 0, 30), ("b", 15, 45)):
        shared = {"nvidia.com/gpu.shared": 1}
        make.a_placement(node, name, since=at(since), until=at(until), boards=[2], resources=shared)
    make.a_placement(node, "chat", since=at(0), until=at(30), boards=[0], slices=[[0, "7"]], resources=CUT)
    devices = (SLICE, NEXT, OTHER, GpuDevice("gpu-1", 2, "GPU-2"))

    found = [allocated(node, device).seconds for device in devices]
    rows = [
        GpuHour(uuid=device.uuid, gi_id=device.gi_id, seen_s=3600, allocated_s=seconds)
        for device, seconds in zip(devices, found, strict=True)
    ]

    assert found == [30 * 60, 0.0, 60 * 60, 45 * 60]
    assert NodeHour(HOUR, rows, ()).allocated_h == 0.5 + 1 + 0.75
    rows[-1].allocated_s = None
    assert NodeHour(HOUR, rows, ()).allocated_h is None
