"""A healthy twin: which node it is and why, why there is none, and what differs."""

from array import array
from datetime import timedelta

import pytest
from django.urls import reverse

from health.inbox.comparable_nodes import comparable_node_of
from health.models import GpuHour
from health.sources import snapshots
from health.sources.hours import provide_partition
from health.telemetry.base import TelemetryReading
from health.telemetry.snapshot import GpuDevice, MetricColumn, TelemetrySnapshot
from tests import make
from tests.callers import calling
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


def like(cluster, name: str, pool=None, **given):
    snapshots.forget(cluster.pk)
    row = {"gpus": 8, "gpu_product": "H100", "driver_version": "580.1", "kernel": "6.8", "is_gpu_node": True} | given
    return make.a_node(cluster, name, pool=pool, **row)


def test_is_healthy_and_of_the_same_product_pool_and_driver(cluster, pool, root):
    here = like(cluster, "gpu-1", pool)
    like(cluster, "gpu-2", pool, gpu_product="A100")
    like(cluster, "gpu-3", pool, driver_version="570.1")
    like(cluster, "gpu-4")
    like(cluster, "gpu-5", pool, is_unschedulable=True)
    like(cluster, "gpu-6", pool, unresolved=1)
    like(make.a_cluster("other"), "gpu-7")
    comparable = like(cluster, "gpu-8", pool)

    found = comparable_node_of(here, root, now=NOON)

    assert found.node == comparable
    assert found.reason == (
        "It is healthy, of pool h100, has GPUs H100 and runs driver 580.1; it is the only such node."
    )


def test_a_node_with_a_muted_finding_is_no_healthy_twin(cluster, pool, root):
    here = like(cluster, "gpu-1", pool)
    ill, noted = like(cluster, "gpu-2", pool), like(cluster, "gpu-3", pool)
    make.a_finding(cluster, f"GPU 3 of {ill.name}", node=ill, severity="critical", state="muted")
    make.a_finding(cluster, node=noted, severity="note", state="muted")

    assert comparable_node_of(here, root, now=NOON).node == noted
    noted.delete()
    assert comparable_node_of(here, root, now=NOON).reason.endswith(
        ": the only node like it and healthy has a muted finding."
    )


def test_a_driver_whose_label_is_gone_is_none_that_a_twin_runs(cluster, pool, root):
    here = like(cluster, "gpu-1", pool)
    like(cluster, "gpu-2", pool, driver_unknown_since=NOON)

    found = comparable_node_of(here, root, now=NOON)

    assert found.node is None
    assert "the only node with them in pool h100 does not report driver 580.1." in found.reason


def test_who_names_its_driver_no_more_is_held_against_who_runs_what_it_last_named(cluster, pool, root):
    here = like(cluster, "gpu-1", pool, driver_unknown_since=NOON)
    like(cluster, "gpu-2", pool, driver_unknown_since=NOON)
    like(cluster, "gpu-3", pool, driver_version="570.1")
    comparable = like(cluster, "gpu-4", pool)

    found = comparable_node_of(here, root, now=NOON)

    assert found.node == comparable
    assert found.reason == (
        "It is healthy, of pool h100, has GPUs H100 and runs driver 580.1, the last version that this node "
        "reported; its label is gone; it is the only such node."
    )


def test_the_same_kernel_goes_first_then_the_load_then_the_name(cluster, pool, root):
    here = like(cluster, "gpu-5", pool, gpu_allocated=8)
    idle = like(cluster, "gpu-1", pool, gpu_allocated=0)
    like(cluster, "gpu-2", pool, gpu_allocated=8, kernel="6.9")
    busy = like(cluster, "gpu-4", pool, gpu_allocated=8)
    first = like(cluster, "gpu-3", pool, gpu_allocated=8)

    assert comparable_node_of(here, root, now=NOON).node == first
    assert (
        "Of 4 such nodes, it is the first by name with the same kernel"
        in comparable_node_of(here, root, now=NOON).reason
    )
    first.delete()
    assert comparable_node_of(here, root, now=NOON).node == busy
    busy.delete()
    assert comparable_node_of(here, root, now=NOON).node == idle


def test_says_what_lacks_where_there_is_none(cluster, pool, root):
    here = like(cluster, "gpu-1", pool)

    def reason() -> str:
        found = comparable_node_of(here, root, now=NOON)
        assert found.node is None
        return found.reason

    assert "no other node of pool h100 that you may see has GPUs H100." in reason()
    other = like(cluster, "gpu-2", pool, driver_version="570.1", layout="time-slicing:4", is_ready=False)
    assert "the only node with them in pool h100 does not report driver 580.1." in reason()
    type(other).objects.update(driver_version="580.1")
    assert "the only node with its driver partitions and shares its GPUs in another way." in reason()
    type(other).objects.update(layout="")
    assert "the only node like it is not healthy now." in reason()
    like(cluster, "gpu-3", pool, is_ready=False)
    assert "none of the 2 nodes like it is healthy now." in reason()
    type(here).objects.update(gpu_product="")
    here.refresh_from_db()
    assert "the product of its GPUs is unknown" in reason()


def test_is_never_a_node_that_one_may_not_see(cluster, pool):
    seen = make.a_pool(cluster, "seen")
    here = like(cluster, "gpu-1", pool)
    here.pools.add(seen)
    like(cluster, "gpu-2", pool)
    pat = make.a_user("pat", role="")
    make.give(pat, "viewer", on=seen)

    assert comparable_node_of(here, pat, now=NOON).node is None


def test_says_what_differs_and_what_does_not(cluster, pool, root):
    here = like(cluster, "gpu-1", pool, kernel="6.8", labels={"nvidia.com/gpu.machine": "A", "app": "x"})
    like(cluster, "gpu-2", pool, kernel="6.9", labels={"nvidia.com/gpu.machine": "B", "app": "y"})

    found = comparable_node_of(here, root, now=NOON)

    assert [(one.title, one.here, one.there) for one in found.properties] == [
        ("Kernel", "6.8", "6.9"),
        ("nvidia.com/gpu.machine", "A", "B"),
    ]
    assert "GPUs allocated" in found.alike
    assert {one.title: one.here for one in found.measured}["Hottest GPU now"] == "no source"


def test_a_cluster_that_nobody_sees_has_no_healthy_nodes_but_some_that_were(redis, root):
    cluster = make.a_cluster("away", seen_at=NOON - timedelta(days=2))
    pool = make.a_pool(cluster, "h100")
    here = like(cluster, "gpu-1", pool)
    like(cluster, "gpu-2", pool)

    reason = calling(root).get(f"/api/v1/nodes/{here.pk}/comparable").json()["reason"]

    assert reason.startswith(
        "It was healthy when its cluster was last observed, 19 November 2026 12:00 UTC, of pool h100"
    )
    assert reason in page(visiting(root), reverse("comparable-node", args=[here.pk])).text
    type(here).objects.exclude(pk=here.pk).update(is_ready=False)
    assert (
        "the only node like it was not healthy when its cluster was last observed"
        in comparable_node_of(here, root, now=NOON).reason
    )


def test_a_cluster_that_was_never_heard_has_no_twins(redis, root):
    cluster = make.a_cluster("new", seen_at=None)
    here = like(cluster, "gpu-1")
    like(cluster, "gpu-2")

    found = comparable_node_of(here, root, now=NOON)

    assert found.node is None
    assert "its cluster was never observed, so its healthy nodes are unknown" in found.reason


def measured(here, root) -> dict[str, str]:
    return {one.title: one.here for one in comparable_node_of(here, root, now=NOON).measured}


def told(*devices: GpuDevice, at: list[float] | None = None, **columns: list[float]) -> TelemetryReading:
    snapshot = TelemetrySnapshot(NOON.timestamp(), devices)
    for key, values in columns.items():
        times = array("d", at or [NOON.timestamp() - 5] * len(values))
        snapshot.columns[key] = MetricColumn(array("d", values), times)
    return TelemetryReading(snapshot, frozenset(columns), {})


def test_what_each_slice_says_of_its_board_counts_once_and_the_engine_says_how_busy_they_are(cluster, pool, root):
    here = like(cluster, "gpu-1", pool, gpus=1)
    like(cluster, "gpu-2", pool, gpus=1)
    make.a_source(cluster, exported=["ecc_uncorrected", "gpu_utilisation_ratio", "engine_active_ratio"])
    slices = [GpuDevice("gpu-1", 0, "GPU-a", str(number), "1g.10gb") for number in range(7)]
    reading = told(
        *slices, ecc_uncorrected=[2.0] * 7, gpu_utilisation_ratio=[0.0] * 7, engine_active_ratio=[0.5] * 6 + [1.0]
    )
    snapshots.store(cluster.pk, reading)

    said = measured(here, root)

    assert said["Uncorrected ECC errors"] == "2"
    assert said["Utilisation now, mean"] == "57%"
    late = [NOON.timestamp() - 600] + [NOON.timestamp() - 5] * 6
    snapshots.store(cluster.pk, told(*slices, at=late, ecc_uncorrected=[2.0] * 7, engine_active_ratio=[0.5] * 7))
    said = measured(here, root)
    assert said["Uncorrected ECC errors"] == "2"
    assert said["Utilisation now, mean"] == "50% (6 of 7 GPUs and slices)"


def test_no_xids_are_said_of_hours_of_which_nothing_says_them(cluster, pool, root):
    here = like(cluster, "gpu-1", pool)
    like(cluster, "gpu-2", pool)
    hour = NOON - timedelta(hours=2)
    provide_partition(hour)
    row = {"cluster": cluster, "node_name": "gpu-1", "hour": hour, "seen_s": 3600.0}

    GpuHour.objects.create(**row, uuid="GPU-a", xids=None)
    assert measured(here, root)["Xids, at least"] == ""
    GpuHour.objects.create(**row, uuid="GPU-b", xids=0)
    assert measured(here, root)["Xids, at least"] == "0"


def test_says_of_how_many_gpus_a_number_is_where_not_all_are_fresh(cluster, pool, root):
    here = like(cluster, "gpu-1", pool)
    like(cluster, "gpu-2", pool)
    make.a_source(cluster, exported=["pcie_replays", "engine_active_ratio"])
    devices = [GpuDevice("gpu-1", number, f"GPU-{number}") for number in range(8)]
    old = [NOON.timestamp() - 600] * 7 + [NOON.timestamp() - 5]
    snapshots.store(cluster.pk, told(*devices, at=old, pcie_replays=[3.0] * 8, engine_active_ratio=[0.25] * 8))

    said = measured(here, root)

    assert said["PCIe replays"] == "3 (1 of 8 GPUs)"
    assert said["Utilisation now, mean"] == "25% (1 of 8 GPUs)"


def test_a_twin_in_two_of_its_pools_is_one_node(cluster, pool, root):
    both = make.a_pool(cluster, "more")
    here, comparable = like(cluster, "gpu-1", pool), like(cluster, "gpu-2", pool)
    for each in (here, comparable):
        each.pools.add(both)

    assert "it is the only such node." in comparable_node_of(here, root, now=NOON).reason


def test_page_and_rest_say_the_same(cluster, pool, root):
    here = like(cluster, "gpu-1", pool)
    comparable = like(cluster, "gpu-2", pool)

    shown = page(visiting(root), reverse("comparable-node", args=[here.pk]))
    said = calling(root).get(f"/api/v1/nodes/{here.pk}/comparable").json()

    assert said["node"]["id"] == comparable.pk
    assert said["reason"] in shown.text
    assert f"/nodes/{comparable.pk}" in shown.links
    assert calling(make.a_user("eve")).get(f"/api/v1/nodes/{here.pk}/comparable").status_code == 404


def test_costs_no_more_with_more_nodes(cluster, pool, root, django_assert_max_num_queries):
    here = like(cluster, "gpu-1", pool)
    for number in range(2, 12):
        like(cluster, f"gpu-{number}", pool, created_at=NOON - timedelta(days=9))

    with django_assert_max_num_queries(24) as read:
        comparable_node_of(here, root, now=NOON)

    rows = [query["sql"] for query in read.captured_queries if "kubelet_version" in query["sql"]]
    assert len(rows) == 1, "one node is read whole, and no other"
    assert "LIMIT 1" in rows[0]
