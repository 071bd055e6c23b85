"""The daily sums of GPU-hours: each hour once, whoever records it, and with or without telemetry."""

from datetime import UTC, datetime, timedelta

import pytest

from fleet.history.placements import name_top_owners
from fleet.models import Cluster, Node, Workload
from health import retention
from health.models import NamespaceUsage, OwnerUsage, UsageDay, WorkloadActivity
from health.sources import hours, usage
from health.sources.allocated_hours import AllocatedHour
from tests import make
from tests.health.telemetry.test_hours import BEGUN, BOARD, OTHER, said

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite]
HOUR = datetime.fromtimestamp(BEGUN, UTC)
ENDED = HOUR + timedelta(hours=1)
USES = ("used", "idle", "unmeasured", "unallocated", "quarantined", "in_repair", "unknown")


@pytest.fixture
def cluster():
    return make.a_cluster()


@pytest.fixture
def node(cluster):
    return make.a_node(cluster, "n1", gpus=2, pool=make.a_pool(cluster, "h200"), created_at=HOUR, physical_gpus=2)


def record(cluster, hour=HOUR) -> bool:
    name_top_owners(cluster.pk)
    return usage.record(cluster.pk, hour, AllocatedHour.of(cluster.pk, hour, now=hour + timedelta(hours=1)))


def sums(cluster) -> list[tuple]:
    names = ("namespace", "workload", *USES)
    rows = OwnerUsage.objects.filter(cluster=cluster).order_by("-namespace").values_list(*names)
    return [tuple(0 if each == 0.0 else each for each in row) for row in rows]


@pytest.mark.rounds
@pytest.mark.usefixtures("redis")
def test_an_hour_of_telemetry_says_what_was_used_and_what_was_idle(cluster, node):
    make.a_placement(node, "train", namespace="ml", since=HOUR, until=ENDED, boards=[0, 1],
                     resources={"nvidia.com/gpu": 2})  # fmt: skip
    for minute in range(61):
        at = BEGUN + 60 * minute
        snapshot = said(at, BOARD, OTHER, gpu_utilisation_ratio=0.5)
        snapshot.columns["gpu_utilisation_ratio"].values[1] = 0.0
        hours.count(cluster.pk, snapshot, now=at)

    (ml,) = sums(cluster)
    assert ml[:2] == ("ml", "Job/train")
    assert ml[2:] == (1.0, 1.0, 0, 0, 0, 0, 0)
    row = OwnerUsage.objects.get(workload="Job/train")
    assert (row.rated, row.under_used) == (1.0, pytest.approx(0, abs=0.01)), "half busy is well used"


@pytest.mark.rounds
@pytest.mark.usefixtures("redis")
def test_the_activity_of_a_gpu_counts_for_a_workload_that_had_it_alone(cluster, node):
    Node.objects.filter(pk=node.pk).update(gpu_memory_mib=80_000)
    whole = {"namespace": "ml", "since": HOUR, "until": ENDED, "resources": {"nvidia.com/gpu": 1}}
    make.a_placement(node, "train", **whole, boards=[0])
    make.a_placement(node, "one", **whole, boards=[1])
    make.a_placement(node, "two", **whole, boards=[1])
    for minute in range(61):
        at = BEGUN + 60 * minute
        columns = {"gpu_utilisation_ratio": 0.5, "power_watts": 500.0, "memory_used_mib": 30_000.0}
        hours.count(cluster.pk, said(at, BOARD, OTHER, **columns), now=at)

    row = WorkloadActivity.objects.get()
    assert (row.namespace, row.workload, row.pools) == ("ml", "Job/train", str(node.pools.get().pk))
    assert (row.busy_sum / row.busy_hours, row.energy_kwh) == pytest.approx((0.5, 0.5), rel=0.02)
    assert (row.fits_half, row.fits_quarter) == (row.memory_hours, 0.0)


def test_without_telemetry_allocated_hours_are_not_measured(cluster, node):
    make.a_placement(node, "train", namespace="ml", since=HOUR, until=ENDED, boards=[0])
    record(cluster)

    assert sums(cluster) == [("ml", "Job/train", 0, 0, 1.0, 0, 0, 0, 0), ("", "", 0, 0, 0, 1.0, 0, 0, 0)]
    assert OwnerUsage.objects.first().pools == str(node.pools.get().pk)


def test_hours_are_of_the_topmost_owner_also_when_its_row_came_late_or_is_gone(cluster, node):
    above = {"owner_kind": "JobSet", "owner_name": "llama", "owner_uid": "set"}
    for name in ("train-0", "train-1"):
        make.a_pod(node, name, namespace="ml", owner_kind="Job", owner_name=name, owner_uid=name)
        make.a_placement(node, name, namespace="ml", since=HOUR, until=None, boards=[int(name[-1])])
        Workload.objects.create(
            cluster=cluster, uid=name, kind="Job", namespace="ml", name=name, created_at=HOUR, changed_at=HOUR, **above
        )
    record(cluster)
    train = above | {"owner_kind": "TrainJob", "owner_name": "llama-2", "owner_uid": "train"}
    name = {"namespace": "ml", "name": "llama", "created_at": HOUR, "changed_at": HOUR}
    Workload.objects.create(cluster=cluster, uid="set", kind="JobSet", **name, **train)
    record(cluster, HOUR + timedelta(hours=1))
    Workload.objects.filter(uid="set").delete()
    record(cluster, HOUR + timedelta(hours=2))

    assert sorted(sums(cluster)) == [
        ("ml", "JobSet/llama", 0, 0, 2.0, 0, 0, 0, 0), ("ml", "TrainJob/llama-2", 0, 0, 4.0, 0, 0, 0, 0),
    ]  # fmt: skip


def test_an_hour_counts_once_and_the_next_one_is_added(cluster, node):
    assert [record(cluster), record(cluster), record(cluster, HOUR + timedelta(hours=1))] == [True, False, True]
    assert sums(cluster) == [("", "", 0, 0, 0, 4.0, 0, 0, 0)]
    assert NamespaceUsage.objects.get().unallocated == 4.0
    assert UsageDay.objects.get().hours.bit_count() == 2
    assert usage.is_recorded(cluster.pk, HOUR)
    assert not usage.is_recorded(cluster.pk, HOUR - timedelta(hours=1))


@pytest.mark.rounds
@pytest.mark.usefixtures("redis")
def test_a_cluster_without_telemetry_is_recorded_by_its_evaluation(cluster, node):
    Cluster.objects.filter(pk=cluster.pk).update(added_at=HOUR)
    hours.write_over(cluster.pk, now=ENDED + timedelta(minutes=9))
    before = UsageDay.objects.count()
    hours.write_over(cluster.pk, now=ENDED + timedelta(minutes=12))

    assert before == 0, "the cluster was added after the hour before"
    assert sums(cluster) == [("", "", 0, 0, 0, 2.0, 0, 0, 0)]


def test_a_cordoned_node_is_quarantined_and_an_uncounted_one_is_named(cluster, node):
    Node.objects.filter(pk=node.pk).update(is_unschedulable=True)
    make.a_node(cluster, "n2", created_at=HOUR, physical_gpus=None)
    record(cluster)

    assert sums(cluster) == [("", "", 0, 0, 0, 0, 2.0, 0, 0)]
    assert UsageDay.objects.get().uncounted == 1


def test_a_node_that_left_counts_while_a_pod_had_its_gpus(cluster, node):
    make.a_placement(node, "train", namespace="ml", since=HOUR, until=HOUR + timedelta(minutes=30), boards=[0])
    node.delete()
    record(cluster)

    assert sums(cluster) == [("ml", "Job/train", 0, 0, 0.5, 0, 0, 0, 0)]


def test_a_node_that_is_not_ready_or_changed_is_in_repair(cluster, node, monkeypatch):
    Node.objects.filter(pk=node.pk).update(is_unschedulable=True)
    monkeypatch.setattr(usage, "IN_CHANGE", [lambda _: ["n1"]])
    make.a_node(cluster, "n2", created_at=HOUR, physical_gpus=3, is_ready=False)
    record(cluster)

    assert sorted(OwnerUsage.objects.values_list("in_repair", "quarantined")) == [(2.0, 0.0), (3.0, 0.0)]


def test_sums_are_kept_as_long_as_the_history(cluster, node):
    record(cluster)

    retention.tidy(before=HOUR, now=HOUR + timedelta(days=399))
    kept = OwnerUsage.objects.count()
    retention.tidy(before=HOUR + timedelta(days=1), now=HOUR + timedelta(days=401))

    assert (kept, OwnerUsage.objects.count(), UsageDay.objects.count()) == (1, 0, 0)
