"""Which pods have GPUs and do nothing, from the roll-ups, the newest frame and who has what."""

from datetime import timedelta
from types import MappingProxyType

import pytest

from fleet.models import Gpu, Node, ResourceClaim, ResourceSlice
from gpu.resources import Way
from health.evaluation.exporter_silence import ReportingNodes
from health.evaluation.idle_gpus import idle_allocations
from health.models import GpuHour
from health.rules.base import IdleAllocation
from health.sources.hours import provide_partition
from health.telemetry.snapshot import GpuDevice, MetricColumn, TelemetrySnapshot
from tests.make import NOON, a_cluster, a_node, a_pod

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
NOW = NOON + timedelta(minutes=20)
GPU = "nvidia.com/gpu"


@pytest.fixture
def node():
    row = a_node(a_cluster(), "gpu-1", gpus=2)
    for day in (NOON, NOON - 24 * HOUR):
        provide_partition(day)
    for index in range(2):
        Gpu.objects.update_or_create(node=row, index=index, defaults={"uuid": f"GPU-{index}"})
    return row


def hours(node, *utilisation: float | None, index: int = 0, seen_s: float = 3600, gi_id: str = "") -> None:
    """The newest first: of the hour from eleven to noon, the one before, …"""
    for number, value in enumerate(utilisation):
        GpuHour.objects.create(
            cluster=node.cluster, uuid=f"GPU-{index}", gi_id=gi_id, hour=NOON - (number + 1) * HOUR,
            node_name=node.name, index=index, seen_s=seen_s, utilisation=value,
        )  # fmt: skip


def holding(node, *indices: int, began=3 * HOUR, told: bool = True):
    devices = {GPU: [f"GPU-{index}" for index in indices]} if told else {}
    return a_pod(node, "idler", gpus=len(indices), devices=devices, started_at=NOON - began)


def samples_of(*values: float | None) -> ReportingNodes:
    """What each GPU says now. None: nothing."""
    snapshot = TelemetrySnapshot(
        NOW.timestamp(), tuple(GpuDevice("gpu-1", index, f"GPU-{index}") for index in range(len(values)))
    )
    column = snapshot.columns["gpu_utilisation_ratio"] = MetricColumn.empty(len(values))
    for place, value in enumerate(values):
        if value is not None:
            column.values[place], column.times[place] = value, snapshot.taken_at
    return ReportingNodes(frozenset({"gpu-1"}), frozenset({"gpu-1"}), snapshot)


def found(node, reporting: ReportingNodes | None = None, classes=MappingProxyType({})) -> tuple[IdleAllocation, ...]:
    return idle_allocations(node.cluster, reporting or samples_of(0.0, 0.0), classes, now=NOW).get("gpu-1", ())


def test_a_pod_whose_gpu_did_nothing_for_two_hours(node):
    holding(node, 0)
    hours(node, 0.0, 0.049)

    assert found(node) == (IdleAllocation("team-a/idler", 2, "GPU-0"),)


@pytest.mark.parametrize("values", [(0.0,), (0.0, 0.05), (0.05, 0.0, 0.0), (None, None), (0.0, None)])
def test_one_that_worked_lately_or_of_which_nothing_says_it_is_not_idle(node, values):
    holding(node, 0)
    hours(node, *values)

    assert found(node) == ()


def test_an_hour_that_was_hardly_heard_says_nothing(node):
    holding(node, 0)
    hours(node, 0.0)
    GpuHour.objects.create(
        cluster=node.cluster, uuid="GPU-0", hour=NOON - 2 * HOUR, node_name="gpu-1", seen_s=3000, utilisation=0.0
    )

    assert found(node) == ()


@pytest.mark.parametrize(("values", "number"), [((0.0, 0.0), 1), ((0.06, 0.0), 0), ((None, 0.0), 0)])
def test_what_it_says_now_counts_too(node, values, number):
    holding(node, 0)
    hours(node, 0.0, 0.0)

    assert len(found(node, samples_of(*values))) == number


def test_where_nobody_listens_nobody_is_idle(node, django_assert_num_queries):
    with django_assert_num_queries(0):
        assert idle_allocations(node.cluster, None, {}, now=NOW) == {}


def test_a_pod_that_came_within_the_hours_had_no_time(node):
    holding(node, 0, began=1.9 * HOUR)
    hours(node, 0.0, 0.0)

    assert found(node) == ()


def test_a_gpu_that_nobody_holds_is_free_and_not_idle(node):
    holding(node, 1)
    hours(node, 0.0, 0.0)
    hours(node, 0.9, 0.9, index=1)

    assert found(node, samples_of(0.0, 0.9)) == ()


def test_of_a_pod_that_uses_some_of_its_gpus_the_others_are_told(node):
    holding(node, 0, 1)
    hours(node, 0.0, 0.0)
    hours(node, 0.9, 0.9, index=1)

    assert found(node, samples_of(0.0, 0.9)) == (IdleAllocation("team-a/idler", 2, "GPU-0"),)


def test_a_board_is_idle_when_all_its_slices_are(node):
    holding(node, 0)
    hours(node, 0.0, 0.0, gi_id="1")
    hours(node, 0.5, 0.5, gi_id="2")

    assert found(node) == ()


def test_where_nothing_says_which_gpus_a_pod_has_only_a_node_that_is_idle_as_a_whole(node):
    holding(node, 0, told=False)
    hours(node, 0.0, 0.0)

    assert found(node) == ()

    hours(node, 0.0, 0.0, index=1)
    assert found(node) == (IdleAllocation("team-a/idler", 2),)


def test_where_nothing_but_its_exporter_tells_the_uuid_of_a_gpu_its_place_does(node):
    Gpu.objects.update(uuid="")
    holding(node, 0, told=False)
    hours(node, 0.0, 0.0)
    hours(node, 0.0, 0.0, index=1)

    assert found(node) == (IdleAllocation("team-a/idler", 2),)


def test_each_board_has_hours_of_its_own(node):
    holding(node, 0, 1, began=25 * HOUR)
    hours(node, *[0.0] * 24)
    hours(node, 0.0, 0.0, index=1)

    assert found(node) == (IdleAllocation("team-a/idler", 24, "GPU-0"), IdleAllocation("team-a/idler", 2, "GPU-1"))


def test_turns_on_a_board_are_called_so(node):
    Node.objects.update(layout="gpu=whole/time-slicing*4")
    for name in ("a", "b"):
        a_pod(node, name, devices={GPU: ["GPU-0"]}, started_at=NOON - 3 * HOUR)
    hours(node, 0.0, 0.0)

    way = Way(sharing="time-slicing", replicas=4)
    assert found(node) == (IdleAllocation("team-a/a", 2, "GPU-0", way), IdleAllocation("team-a/b", 2, "GPU-0", way))


def test_turns_that_nothing_places_are_no_gpus(node):
    Node.objects.update(layout="gpu=whole/time-slicing*4")
    a_pod(node, "a", gpus=3, started_at=NOON - 3 * HOUR)
    hours(node, 0.0, 0.0)
    hours(node, 0.0, 0.0, index=1)

    assert found(node) == (IdleAllocation("team-a/a", 2, way=Way(sharing="time-slicing", replicas=4), number=3),)


def test_a_slice_is_called_so(node):
    Node.objects.update(layout="gpu=1g.10gb")
    a_pod(node, "a", devices={GPU: ["MIG-GPU-0/1/0"]}, started_at=NOON - 3 * HOUR)
    hours(node, 0.0, 0.0, gi_id="1")

    assert found(node) == (IdleAllocation("team-a/a", 2, "GPU-0", Way("1g.10gb")),)


def test_pods_that_have_a_whole_board_together_share_it(node):
    for name in ("a", "b"):
        a_pod(node, name, devices={GPU: ["GPU-0"]}, started_at=NOON - 3 * HOUR)
    hours(node, 0.0, 0.0)

    assert {each.way for each in found(node)} == {Way(sharing="shared")}


def test_who_only_looks_at_a_board_holds_none(node):
    ResourceSlice.objects.create(
        cluster=node.cluster, uid="slice", name="slice", changed_at=NOON, driver="gpu.nvidia.com", pool="gpu-1",
        pool_generation=1, node_name="gpu-1", devices=[{"name": "gpu-0", "type": "gpu", "uuid": "GPU-0"}],
    )  # fmt: skip
    for name in ("mine", "watcher"):
        device = {"driver": "gpu.nvidia.com", "pool": "gpu-1", "device": "gpu-0", "admin": name == "watcher"}
        ResourceClaim.objects.create(
            cluster=node.cluster, uid=name, namespace="team-a", name=name, created_at=NOON, changed_at=NOON,
            allocated=[device],
        )  # fmt: skip
        a_pod(node, name, gpus=0, claims=[name], is_tenant=True, started_at=NOON - 3 * HOUR)
    hours(node, 0.0, 0.0)

    assert found(node) == (IdleAllocation("team-a/mine", 2, "GPU-0"),)


def test_the_longest_that_is_asked_for_is_told(node):
    holding(node, 0, began=13 * HOUR)
    hours(node, *[0.0] * 24)

    assert found(node) == (IdleAllocation("team-a/idler", 12, "GPU-0"),)


def test_an_hour_whose_rows_are_to_come_is_not_waited_for_in_vain(node):
    """Rows come with the first round after the hour: until then the hours before are judged."""
    holding(node, 0)
    hours(node, 0.0, 0.0)

    pods = idle_allocations(node.cluster, samples_of(0.0, 0.0), {}, now=NOON + HOUR + timedelta(minutes=5))

    assert pods == {"gpu-1": (IdleAllocation("team-a/idler", 2, "GPU-0"),)}


def test_it_costs_two_queries_where_no_gpu_was_idle_for_as_long_as_anybody_is_told(node, django_assert_num_queries):
    holding(node, 0)
    hours(node, 0.0, 0.9)

    with django_assert_num_queries(2):
        assert found(node) == ()


def test_who_holds_what_is_not_asked_of_a_node_that_may_wait_for_longer(node, django_assert_num_queries):
    holding(node, 0)
    hours(node, 0.0, 0.0)

    with django_assert_num_queries(4):
        assert found(node, classes={node.pk: {"inference"}}) == ()


def test_of_many_idle_nodes_the_last_is_told_of_too(node):
    names = [f"gpu-{number:03}" for number in range(205)]
    nodes = [a_node(node.cluster, name, gpus=1) for name in names]
    for row in nodes:
        uuid = f"GPU-of-{row.name}"
        Gpu.objects.filter(node=row).update(uuid=uuid)
        a_pod(row, devices={GPU: [uuid]}, started_at=NOON - 3 * HOUR)
        for number in (1, 2):
            GpuHour.objects.create(
                cluster=row.cluster, uuid=uuid, hour=NOON - number * HOUR, node_name=row.name, index=0, seen_s=3600,
                utilisation=0.0,
            )  # fmt: skip
    devices = tuple(GpuDevice(name, 0, f"GPU-of-{name}") for name in names)
    snapshot = TelemetrySnapshot(NOW.timestamp(), devices)
    column = snapshot.columns["gpu_utilisation_ratio"] = MetricColumn.empty(len(devices))
    for place in range(len(devices)):
        column.values[place], column.times[place] = 0.0, snapshot.taken_at

    found = idle_allocations(node.cluster, ReportingNodes(frozenset(names), frozenset(names), snapshot), {}, now=NOW)

    assert sorted(found) == names
