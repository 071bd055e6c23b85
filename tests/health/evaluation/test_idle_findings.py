"""From whole hours and frames to findings of idle GPUs: what opens one, and what resolves it."""

from datetime import timedelta

import pytest

from fleet.models import Bookmark, DomainEvent, Gpu, Node, Observer, Pod
from health.evaluation import evaluation_round
from health.models import Finding, GpuHour, PoolLimits
from health.sources import hours, snapshots
from health.sources.hours import provide_partition
from health.sources.snapshots import redis_client
from health.telemetry.base import TelemetryReading
from health.telemetry.snapshot import GpuDevice, MetricColumn, TelemetrySnapshot
from tests.health.turns import give_back
from tests.make import NOON, a_cluster, a_node, a_pod, a_pool
from tests.reports import told

pytestmark = [pytest.mark.django_db, pytest.mark.rounds]
GPU = "nvidia.com/gpu"
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
DEVICES = tuple(GpuDevice("gpu-1", index, f"GPU-{index}") for index in range(2))


@pytest.fixture
def node(redis):
    cluster = a_cluster()
    Observer.objects.create(cluster=cluster, lease_until=NOON + timedelta(days=9))
    node = a_node(cluster, "gpu-1", gpus=2)
    for index in range(2):
        Gpu.objects.update_or_create(node=node, index=index, defaults={"uuid": f"GPU-{index}"})
    for day in range(-1, 3):
        provide_partition(NOON + timedelta(days=day))
    yield node
    snapshots.forget(cluster.pk)
    give_back(cluster.pk, "idle-gpus")


def an_hour(node, at, *utilisation: float, seen_s: float = 3600) -> None:
    """The hour that began so many hours from noon, of each GPU in turn."""
    for index, value in enumerate(utilisation):
        GpuHour.objects.create(
            cluster=node.cluster, uuid=f"GPU-{index}", hour=NOON + at * HOUR, node_name=node.name, index=index,
            seen_s=seen_s, utilisation=value,
        )  # fmt: skip


def looked(node, at, *utilisation: float | None) -> None:
    """With what each GPU says at that moment; None: nothing. No value at all: no frame comes."""
    if utilisation:
        snapshot = TelemetrySnapshot(at.timestamp(), DEVICES)
        column = snapshot.columns["gpu_utilisation_ratio"] = MetricColumn.empty(2)
        for place, value in enumerate(utilisation):
            if value is not None:
                column.values[place], column.times[place] = value, snapshot.taken_at
        snapshots.store(node.cluster.pk, TelemetryReading(snapshot, frozenset(snapshot.columns), {}))
    Bookmark.objects.update(last_seen_at=at)
    evaluation_round.evaluate_cluster(node.cluster, now=at)


def a_holder(node, name: str = "idler", *gpus: int, **given):
    devices = {GPU: [f"GPU-{index}" for index in gpus]}
    return a_pod(node, name, gpus=len(gpus), **{"devices": devices, "started_at": NOON - 3 * HOUR} | given)


@pytest.fixture
def idle(node):
    """A finding, twenty minutes past noon: of a pod with the first GPU."""
    a_holder(node, "idler", 0)
    an_hour(node, -2, 0.0, 0.0)
    an_hour(node, -1, 0.0, 0.0)
    looked(node, NOON + 20 * MINUTE, 0.0, 0.0)
    return Finding.objects.open().get(rule="idle-gpus")


def is_open() -> bool:
    return Finding.objects.open().filter(rule="idle-gpus", times=1).exists()


def test_two_idle_hours_are_told(idle):
    assert idle.title == "1 GPU allocated and idle on gpu-1"


def test_nothing_is_resolved_while_nobody_listens(node, idle):
    looked(node, NOON + 25 * MINUTE)

    assert is_open()


def test_nothing_is_resolved_while_the_node_says_nothing(node, idle):
    looked(node, NOON + 25 * MINUTE, None, None)

    assert is_open()


def test_hours_that_nobody_heard_resolve_nothing_and_tell_it_once(node, idle):
    an_hour(node, 0, 0.0, 0.0, seen_s=1800)
    for hour in range(1, 30):
        looked(node, NOON + hour * HOUR + 20 * MINUTE, 0.0, 0.0)

    assert is_open()
    assert DomainEvent.objects.count() == 1


def test_a_busy_moment_resolves_nothing(node, idle):
    for minute in range(25, 65, 10):
        looked(node, NOON + minute * MINUTE, 0.9, 0.0)
        looked(node, NOON + (minute + 5) * MINUTE, 0.0, 0.0)

    assert is_open()
    assert DomainEvent.objects.count() == 1


def test_a_busy_moment_keeps_one_from_being_told(node):
    a_holder(node, "idler", 0)
    an_hour(node, -2, 0.0, 0.0)
    an_hour(node, -1, 0.0, 0.0)

    looked(node, NOON + 20 * MINUTE, 0.9, 0.0)
    assert not is_open()
    looked(node, NOON + 25 * MINUTE, 0.0, 0.0)
    assert is_open()


@pytest.mark.parametrize(("seen_s", "is_resolved"), [(3600, True), (1800, False)])
def test_a_whole_busy_hour_resolves_it(node, idle, seen_s, is_resolved):
    an_hour(node, 0, 0.5, 0.0, seen_s=seen_s)

    looked(node, NOON + HOUR + 20 * MINUTE, 0.0, 0.0)

    assert is_open() is not is_resolved


def test_a_busy_hour_resolves_it_also_where_the_hour_after_was_not_heard(node, idle):
    an_hour(node, 0, 0.5, 0.0)
    an_hour(node, 1, 0.5, 0.0, seen_s=600)

    looked(node, NOON + 2 * HOUR + 20 * MINUTE, None, None)

    assert not is_open()


@pytest.mark.parametrize("said", [(0.0, 0.0), (None, None)])
def test_a_pod_that_is_gone_resolves_it(node, idle, said):
    Pod.objects.update(phase="Succeeded")

    looked(node, NOON + 25 * MINUTE, *said)

    assert not is_open()


def test_another_pod_of_its_name_is_another(node, idle):
    Pod.objects.update(started_at=NOON + 22 * MINUTE)

    looked(node, NOON + 25 * MINUTE, None, None)

    assert not is_open()


def test_who_was_told_of_stays_in_the_sentence_while_its_gpu_is_not_heard(node):
    a_holder(node, "a", 0)
    a_holder(node, "b", 1)
    an_hour(node, -2, 0.0, 0.0)
    an_hour(node, -1, 0.0, 0.0)
    looked(node, NOON + 20 * MINUTE, 0.0, 0.0)
    first = Finding.objects.get(rule="idle-gpus")

    an_hour(node, 0, 0.0)
    looked(node, NOON + HOUR + 20 * MINUTE, 0.0, None)

    assert told(Finding.objects.get(rule="idle-gpus")) == told(first)
    assert told(first).endswith("Pod team-a/a: 1 GPU\nPod team-a/b: 1 GPU")


def test_what_nothing_places_stays_told_too_until_one_of_the_boards_works(node):
    a_holder(node, "idler", 0, devices={})
    an_hour(node, -2, 0.0, 0.0)
    an_hour(node, -1, 0.0, 0.0)
    looked(node, NOON + 20 * MINUTE, 0.0, 0.0)
    looked(node, NOON + HOUR + 20 * MINUTE, None, 0.9)
    assert is_open()

    an_hour(node, 1, 0.0, 0.5)
    looked(node, NOON + 2 * HOUR + 20 * MINUTE, None, 0.9)
    assert not is_open()


def test_a_node_whose_pool_has_more_patience_is_no_longer_told_of(node, idle):
    a_pool(node.cluster, workload_class="inference").nodes.add(Node.objects.get())

    looked(node, NOON + 25 * MINUTE, None, None)

    assert not is_open()


def test_they_are_judged_every_five_minutes_and_stay_as_they_are_between(node, idle):
    Pod.objects.update(phase="Succeeded")

    looked(node, NOON + 24 * MINUTE, 0.0, 0.0)
    assert is_open()
    looked(node, NOON + 25 * MINUTE, 0.0, 0.0)
    assert not is_open()


@pytest.fixture
def half_an_hour(node):
    """The node's pool, whose own limit is 30 minutes."""
    pool = a_pool(node.cluster, "training")
    pool.nodes.add(node)
    PoolLimits.objects.create(pool=pool, rule="idle-gpus", warn=30, warn_after_s=0, by="ada", at=NOON, reason="x")
    a_holder(node, "idler", 0)
    yield pool
    forget_minutes(node)


def forget_minutes(node) -> None:
    redis_client().delete(hours._key_of_cluster(node.cluster_id))


def minutes(node, first: int, last: int, *utilisation: float) -> None:
    """A snapshot a minute is counted, and the last one evaluated."""
    for minute in range(first, last + 1):
        at = NOON + minute * MINUTE
        snapshot = TelemetrySnapshot(at.timestamp(), DEVICES)
        column = snapshot.columns["gpu_utilisation_ratio"] = MetricColumn.empty(2)
        for place, value in enumerate(utilisation):
            column.values[place], column.times[place] = value, snapshot.taken_at
        hours.count(node.cluster_id, snapshot, now=at.timestamp())
    give_back(node.cluster_id, "idle-gpus")
    looked(node, NOON + last * MINUTE, *utilisation)


def test_a_pool_with_a_limit_of_half_an_hour_opens_a_finding_and_its_event(node, half_an_hour):
    minutes(node, 0, 30, 0.0, 0.0)
    assert not is_open()

    minutes(node, 31, 32, 0.0, 0.0)

    assert is_open()
    event = DomainEvent.objects.get(kind="finding.opened", facts__rule="idle-gpus")
    assert event.facts["summary"] == "Each was less than 5 % busy for 30 min."
    minutes(node, 33, 34, 0.9, 0.0)
    assert not is_open()


def test_without_redis_a_reported_gpu_of_such_a_pool_stays_idle(node, half_an_hour):
    minutes(node, 0, 32, 0.0, 0.0)
    forget_minutes(node)
    give_back(node.cluster_id, "idle-gpus")

    looked(node, NOON + 33 * MINUTE, 0.0, 0.0)

    assert is_open()
