"""What tenants have worked on a changed node: never more than anybody saw."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.models import Node, Pod
from health.models import GpuHour
from health.sources.hours import provide_partition
from rollouts.engine.exposure import Allocated, ClusterClock, gpu_time, read_work
from rollouts.gates.base import SeenWork
from tests.make import NOON, a_cluster, a_node, a_placement, a_pod

HOUR = timedelta(hours=1)
CHANGED = NOON - 2 * HOUR
NOTHING = timedelta()

moments = st.integers(-300, 60).map(lambda minutes: NOON + timedelta(minutes=minutes))
spans = st.lists(st.builds(Allocated, moments, moments, st.integers(0, 8)), max_size=8)
hours = st.dictionaries(
    st.integers(-5, 0).map(lambda hour: NOON + hour * HOUR),
    st.dictionaries(st.sampled_from(["GPU-0", "GPU-1"]), st.floats(0, 3600), max_size=2),
    max_size=6,
)


def of(*those: Allocated, gpus: int = 8, since: datetime = CHANGED, busy=None) -> timedelta:
    return gpu_time(those, gpus=gpus, since=since, until=NOON, busy=busy)


@given(spans, st.integers(0, 8), moments, st.none() | hours)
def test_never_more_than_gpus_times_the_time_nor_than_each_pod_had(those: Sequence[Allocated], gpus, since, busy):
    seen = of(*those, gpus=gpus, since=since, busy=busy)

    had = sum((max(one.gpus, 1) * max(NOTHING, min(one.until, NOON) - max(one.since, since)) for one in those), NOTHING)
    assert NOTHING <= seen <= min(gpus * max(NOTHING, NOON - since), had)


@given(spans, hours, moments)
def test_telemetry_only_ever_takes_off(those: Sequence[Allocated], busy, since):
    heard = of(*those, since=since, busy=busy)

    under_load = timedelta(seconds=sum(seconds for of_hour in busy.values() for seconds in of_hour.values()))
    assert heard <= min(of(*those, since=since), under_load + timedelta(milliseconds=1))


@given(spans, moments)
def test_more_work_is_never_less(those: Sequence[Allocated], since: datetime):
    assert of(*those[1:], since=since) <= of(*those, since=since)


def test_pods_side_by_side_add_up_and_one_gpu_is_counted_once():
    whole = Allocated(NOON - HOUR, NOON, 4)
    part = Allocated(NOON - HOUR, NOON, 0)

    assert of(whole, whole) == 8 * HOUR
    assert of(whole, whole, whole) == 8 * HOUR, "more than the node has"
    assert of(part, part) == HOUR, "on how many GPUs slices are nothing tells"
    assert of(Allocated(CHANGED - HOUR, CHANGED + HOUR / 2, 2)) == HOUR, "what was before the change is not counted"


def test_of_the_hour_of_the_change_the_time_before_is_taken_off():
    half_past = CHANGED + HOUR / 2
    had = Allocated(half_past, NOON, 2)

    busy = {CHANGED: {"GPU-0": 2400.0, "GPU-1": 1800.0}}

    assert of(had, since=half_past, busy=busy) == timedelta(seconds=600)
    assert of(had, since=half_past, busy={}) == NOTHING, "it is heard, and no hour of it is over"


# By rows

ROWS = pytest.mark.django_db


@pytest.fixture
def node() -> Node:
    provide_partition(CHANGED)
    return a_node(a_cluster(), "node-1", layout="", physical_gpus=8)


def read(node: Node, *, ahead: timedelta = NOTHING, seen_at: datetime = NOON) -> SeenWork:
    pods = {node.name: list(Pod.objects.filter(node=node))}
    found = read_work(node.cluster_id, {node.uid: CHANGED}, {node.uid: node}, pods, ClusterClock(seen_at, ahead))
    return found[node.uid]


@ROWS
def test_a_node_on_which_nobody_runs_has_seen_nothing(node: Node):
    a_pod(node, "driver", gpus=0, operand="driver")

    assert read(node) == SeenWork(NOTHING)


@ROWS
def test_a_pod_counts_since_it_became_ready(node: Node):
    a_pod(node, gpus=2, started_at=NOON - HOUR, ready_since=NOON - timedelta(minutes=30))
    a_pod(node, gpus=2, started_at=NOON - HOUR, is_ready=False)

    assert read(node).gpu_time == HOUR


@ROWS
def test_a_pod_that_stayed_through_the_change_is_not_counted(node: Node):
    began = CHANGED - timedelta(minutes=10)
    a_pod(node, gpus=1, started_at=NOON - 9 * HOUR, ready_since=began - timedelta(seconds=1))
    a_pod(node, gpus=1, started_at=began + timedelta(minutes=5), ready_since=CHANGED)
    a_placement(node, "old", ended="Completed", since=began - timedelta(seconds=1), until=NOON)
    pods = {node.name: list(Pod.objects.filter(node=node))}
    changed, nodes, clock = {node.uid: CHANGED}, {node.uid: node}, ClusterClock(NOON, NOTHING)

    found = read_work(node.cluster_id, changed, nodes, pods, clock, {node.uid: began})

    assert found[node.uid].gpu_time == 2 * HOUR


@ROWS
def test_what_ran_before_a_restart_is_not_counted(node: Node):
    pod = a_pod(node, gpus=1, started_at=CHANGED, ready_since=CHANGED)
    before = read(node).gpu_time
    Pod.objects.filter(pk=pod.pk).update(ready_since=NOON - timedelta(minutes=1), restarts=1)

    assert (before, read(node).gpu_time) == (2 * HOUR, timedelta(minutes=1))


@ROWS
def test_of_what_is_over_only_who_completed_is_counted(node: Node):
    times = {"since": CHANGED, "until": NOON - HOUR}
    for number, ended in enumerate(["Error", "Evicted", ""]):
        a_placement(node, f"pod-{number}", ended=ended, **times)
    without = read(node).gpu_time
    a_placement(node, "done", ended="Completed", resources={"nvidia.com/gpu": 3}, **times)

    assert (without, read(node).gpu_time) == (NOTHING, 3 * HOUR)


@ROWS
def test_nobody_looked_at_what_was_over_unseen(node: Node):
    a_placement(node, "done", ended="Completed", since=CHANGED, until=NOON, seen_until=CHANGED + timedelta(minutes=5))

    assert read(node).gpu_time == timedelta(minutes=5)


@ROWS
@pytest.mark.parametrize("ahead", [timedelta(minutes=10), timedelta(minutes=-10)])
def test_a_clock_that_is_off_makes_it_less_and_never_more(node: Node, ahead: timedelta):
    """By which of the two an instant was said nobody knows: the later of both is taken."""
    pod = a_pod(node, gpus=1, started_at=NOON - HOUR, ready_since=NOON - HOUR)

    assert read(node, ahead=ahead).gpu_time <= min(HOUR, HOUR + ahead)
    Pod.objects.filter(pk=pod.pk).update(ready_since=NOON + HOUR)
    assert read(node, ahead=ahead).gpu_time == NOTHING


@ROWS
def test_it_goes_no_further_than_the_cluster_was_seen(node: Node):
    a_pod(node, gpus=1, started_at=NOON - HOUR, ready_since=NOON - HOUR)

    assert read(node, seen_at=NOON - HOUR / 2).gpu_time == HOUR / 2


@ROWS
def test_where_nobody_knows_how_many_gpus_there_are_nothing_is_counted(node: Node):
    a_pod(node, gpus=1, started_at=NOON - HOUR, ready_since=NOON - HOUR)
    node.physical_gpus, node.allocatable = None, {}

    assert read(node).gpu_time == NOTHING


@ROWS
@pytest.mark.parametrize(("busy_s", "counted"), [(0.0, NOTHING), (600.0, timedelta(minutes=10))])
def test_what_was_allocated_and_idle_is_not_counted(node: Node, busy_s: float, counted: timedelta):
    a_pod(node, gpus=8, started_at=CHANGED, ready_since=CHANGED)
    GpuHour.objects.create(
        cluster=node.cluster, uuid="GPU-0", hour=CHANGED, node_name=node.name, seen_s=3600, busy_s=busy_s
    )

    assert read(node) == SeenWork(counted, has_telemetry=True)


@ROWS
def test_a_part_of_a_board_that_is_cut_is_the_board(node: Node):
    a_pod(node, gpus=8, started_at=CHANGED, ready_since=CHANGED)
    for slice_ in ("1", "2"):
        GpuHour.objects.create(
            cluster=node.cluster, uuid="GPU-0", gi_id=slice_, hour=CHANGED, node_name=node.name, seen_s=3600,
            busy_s=3600,
        )  # fmt: skip

    assert read(node).gpu_time == HOUR


@ROWS
def test_telemetry_that_does_not_say_how_busy_takes_nothing_off(node: Node):
    a_pod(node, gpus=1, started_at=CHANGED, ready_since=CHANGED)
    GpuHour.objects.create(cluster=node.cluster, uuid="GPU-0", hour=CHANGED, node_name=node.name, seen_s=3600)

    assert read(node) == SeenWork(2 * HOUR)


@ROWS
def test_costs_two_queries_however_many_nodes(node: Node, django_assert_num_queries):
    nodes = {one.uid: one for one in (node, *(a_node(node.cluster) for _ in range(5)))}
    changed = dict.fromkeys(nodes, CHANGED)

    with django_assert_num_queries(2):
        assert len(read_work(node.cluster_id, changed, nodes, {}, ClusterClock(NOON, NOTHING))) == 6
    with django_assert_num_queries(0):
        assert read_work(node.cluster_id, {}, nodes, {}, ClusterClock(NOON, NOTHING)) == {}
