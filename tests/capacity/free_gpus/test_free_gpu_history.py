"""Free and stranded GPUs of a pool over time: one sample an hour, on its page and in REST."""

from datetime import timedelta

import pytest

from capacity.free_gpus import free_gpu_history
from capacity.free_gpus.free_gpu_history import days_of, history_of, record
from capacity.models import ClusterFreeGpuSample, FreeGpuSample
from capacity.web.free_gpu_history import lines_of
from health.sources import usage
from health.sources.allocated_hours import AllocatedHour
from tests import make
from tests.callers import calling
from tests.make import NOON
from tests.pages import page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite, pytest.mark.usefixtures("now")]
HOUR = timedelta(hours=1)


@pytest.fixture
def pool():
    cluster = make.a_cluster("east")
    pool = make.a_pool(cluster, "h200")
    row = {"pool": pool, "gpus": 8, "created_at": NOON - 3 * HOUR}
    make.a_node(cluster, "n1", **row, gpu_allocated=4)
    make.a_node(cluster, "n2", **row, is_unschedulable=True)
    return pool


def a_sample(pool, ago: int, free: float, usable: float) -> FreeGpuSample:
    return FreeGpuSample.objects.create(pool=pool, hour=NOON - ago * HOUR, free=free, usable=usable)


def test_an_hour_of_usage_writes_one_sample_for_each_pool(pool):
    hour = NOON - HOUR
    for _ in range(2):
        usage.record(pool.cluster_id, hour, AllocatedHour(is_seen=True))
    record(pool.cluster_id, hour)  # a second worker

    sample = FreeGpuSample.objects.get()
    assert (sample.hour, sample.free, sample.usable, sample.stranded) == (NOON, 12, 4, {"cordon": 8})
    whole = ClusterFreeGpuSample.objects.get()
    assert (whole.cluster, whole.hour, whole.free, whole.stranded) == (pool.cluster, NOON, 12, {"cordon": 8})


def test_a_pool_whose_pods_were_never_read_has_no_sample():
    cluster = make.a_cluster("west", seen_at=None)
    make.a_pool(cluster)

    record(cluster.pk, NOON)

    assert not FreeGpuSample.objects.exists()
    assert not ClusterFreeGpuSample.objects.exists()


def test_a_node_in_two_pools_counts_once_in_its_cluster_and_only_for_those_who_see_all_of_it(pool):
    make.a_pool(pool.cluster, "both").nodes.set(pool.nodes.all())
    record(pool.cluster_id, NOON - HOUR)
    key = pool.cluster_id
    guest, bob = make.a_user("guest", role="viewer", on=pool), make.a_user("bob", role="viewer")
    addresses = (f"/parts/clusters/{key}/free-gpu-history", f"/clusters/{key}/free-gpus.csv")

    found = calling(bob).get(f"/api/v1/clusters/{key}/free-gpus/history").json()["samples"]

    assert [each["free"] for each in found] == [12]
    assert "newest: 12 free, 4 usable" in page(visiting(bob), addresses[0]).text
    assert len(visiting(bob).get(addresses[1]).content.decode().splitlines()) == 2
    assert [visiting(guest).get(address).status_code for address in addresses] == [404, 404]
    assert calling(guest).get(f"/api/v1/clusters/{key}/free-gpus/history").status_code == 404


def test_days_have_means_and_a_gap_breaks_the_line(pool):
    samples = [a_sample(pool, ago, free, 2) for ago, free in ((30, 6), (3, 4), (2, 8))]

    assert [(row.free, row.usable, row.stranded_most, row.hours) for row in days_of(samples)] == [
        (6, 2, 6, 2), (6, 2, 4, 1),
    ]  # fmt: skip
    assert [line.count(",") for line in lines_of(samples, "free", 8, now=NOON)] == [2, 3]


def test_page_file_and_rest_have_the_samples_of_a_visible_pool(pool):
    a_sample(pool, 1, 6, 2)
    a_sample(pool, 24 * 20, 1, 1)
    bob = make.a_user("bob", role="viewer", on=pool)
    viewer, path = visiting(bob), f"/api/v1/pools/{pool.pk}/free-gpus/history"

    text = page(viewer, f"/parts/pools/{pool.pk}/free-gpu-history").text
    assert "newest: 6 free, 2 usable" in text
    assert "2026-11-21 6.0 2.0 4.0 1" in text
    assert len(viewer.get(f"/pools/{pool.pk}/free-gpus.csv").content.decode().splitlines()) == 3
    assert [each["free"] for each in calling(bob).get(path).json()["samples"]] == [6]
    assert calling(bob).get(f"{path}?days=91").status_code == 400
    assert calling(make.a_user("eve")).get(path).status_code == 404
    assert len(history_of(pool, days=90, now=NOON)) == 2


def test_old_samples_are_deleted(pool):
    a_sample(pool, 24 * 92, 1, 1)
    a_sample(pool, 1, 1, 1)

    assert free_gpu_history.tidy(before=NOON, now=NOON) == 1
