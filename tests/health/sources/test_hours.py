from datetime import UTC, datetime, timedelta

import pytest
from django.db import DatabaseError, connection
from redis import Redis

from health import tasks
from health.models import GpuHour
from health.sources import hours
from health.sources.snapshots import SnapshotsUnavailable
from health.telemetry.hours import HourTally
from tests import make
from tests.health.telemetry.test_hours import BEGUN, BOARD, OTHER, said

pytestmark = [pytest.mark.rounds, pytest.mark.django_db, pytest.mark.usefixtures("redis"), pytest.mark.sqlite]
WARM = {"temperature_celsius": 50.0, "gpu_utilisation_ratio": 0.5, "xid": 0.0}
HOUR = datetime.fromtimestamp(BEGUN, UTC)


@pytest.fixture
def cluster():
    return make.a_cluster()


def look(cluster, *, minute: float, devices=(BOARD,), **values) -> None:
    at = BEGUN + 60 * minute
    hours.count(cluster.pk, said(at, *devices, **WARM | values), now=at)


def test_nothing_is_written_while_the_hour_lasts_and_all_of_it_once_it_is_over(cluster):
    for minute in range(60):
        look(cluster, minute=minute)
    before = GpuHour.objects.count()
    look(cluster, minute=60)

    row = GpuHour.objects.get()
    assert before == 0
    assert (row.hour, row.uuid, row.index, row.node_name) == (HOUR, "GPU-0", 0, "n1")
    assert (row.seen_s, row.busy_s, row.temperature_max) == (3600, 3600, 50)


def test_tells_how_busy_tensor_cores_and_memory_were_and_null_where_nothing_says(cluster):
    for minute in range(61):
        look(cluster, minute=minute, tensor_active_ratio=0.25, memory_active_ratio=0.0)
    for minute in range(61, 121):
        look(cluster, minute=minute)

    assert list(GpuHour.objects.order_by("hour").values_list("tensor", "bandwidth")) == [(0.25, 0.0), (None, None)]


def test_tells_to_whom_it_was_allocated_the_longest(cluster):
    node = make.a_node(cluster, "n1", gpus=1)
    make.a_placement(node, "train", namespace="ml", since=HOUR, until=HOUR + timedelta(minutes=45), boards=[0])
    for minute in range(61):
        look(cluster, minute=minute)

    row = GpuHour.objects.get()
    assert (row.allocated_s, row.namespace, row.workload) == (2700, "ml", "Job/train")


def test_looks_within_a_minute_cost_nothing_and_lose_nothing(cluster):
    for quarter in range(4 * 60 + 1):
        look(cluster, minute=quarter / 4)

    assert GpuHour.objects.get().seen_s == 3600


def test_a_gap_across_the_end_of_an_hour_is_split_there(cluster):
    for minute in range(59):
        look(cluster, minute=minute)
    for minute in (61, 62, 120):
        look(cluster, minute=minute)

    assert list(GpuHour.objects.order_by("hour").values_list("seen_s", flat=True)) == [3600, 120]


def test_a_look_by_a_clock_that_is_behind_takes_nothing_from_an_hour(cluster):
    for minute in range(61):
        look(cluster, minute=minute)
    look(cluster, minute=59.9)
    look(cluster, minute=61)
    look(cluster, minute=120)

    assert list(GpuHour.objects.order_by("hour").values_list("seen_s", flat=True)) == [3600, 60]


def test_the_next_hour_knows_the_xid_before_it(cluster):
    look(cluster, minute=0, xid=31.0)
    look(cluster, minute=1, xid=31.0)
    look(cluster, minute=60, xid=31.0)
    look(cluster, minute=61, xid=79.0)
    look(cluster, minute=120, xid=79.0)

    assert list(GpuHour.objects.order_by("hour").values_list("xids", flat=True)) == [0, 1]


def test_the_same_hour_again_is_written_over(cluster):
    tally = HourTally.begun(said(BEGUN, BOARD, OTHER), now=BEGUN)
    tally.add(said(BEGUN + 60, BOARD, OTHER, **WARM), now=BEGUN + 60)

    assert [hours.write(cluster.pk, tally, now=HOUR) for _ in range(2)] == [2, 2]
    assert GpuHour.objects.count() == 2


def test_what_redis_lost_is_less_of_the_hour_and_no_error(cluster, redis):
    look(cluster, minute=0)
    look(cluster, minute=1)
    Redis.from_url(redis).flushall()
    look(cluster, minute=58)
    look(cluster, minute=59)
    look(cluster, minute=60)

    assert GpuHour.objects.get().seen_s == 120


def test_what_is_said_hours_later_is_not_of_the_hour_before(cluster):
    look(cluster, minute=0)
    look(cluster, minute=1)
    look(cluster, minute=180, temperature_celsius=90.0, xid=79.0)

    row = GpuHour.objects.get()
    assert (row.hour, row.seen_s, row.temperature_max, row.xids) == (HOUR, 60, 50, 0)


def over(cluster, *, minute: float) -> list[float]:
    hours.write_over(cluster.pk, now=HOUR + timedelta(minutes=minute))
    return list(GpuHour.objects.values_list("seen_s", flat=True))


def test_an_hour_after_which_nothing_has_telemetry_is_written_all_the_same(cluster):
    for minute in range(51):
        look(cluster, minute=minute)

    assert over(cluster, minute=62) == []  # a look may still come
    assert over(cluster, minute=64) == [3000]


def test_whoever_judges_a_cluster_looks_for_it(cluster, monkeypatch):
    monkeypatch.setattr(tasks, "evaluate_cluster", lambda *_, **__: 0)
    look(cluster, minute=0)
    look(cluster, minute=1)
    tasks.look_for_findings(cluster_id=cluster.pk)

    assert GpuHour.objects.get().seen_s == 60


def test_an_hour_that_is_written_is_not_written_over(cluster):
    for minute in range(51):
        look(cluster, minute=minute)
    over(cluster, minute=64)
    GpuHour.objects.update(seen_s=3600)

    assert over(cluster, minute=70) == [3600]


def test_the_next_look_after_it_knows_the_xid_before(cluster):
    look(cluster, minute=0, xid=31.0)
    look(cluster, minute=1, xid=31.0)
    over(cluster, minute=64)
    look(cluster, minute=90, xid=31.0)
    look(cluster, minute=91, xid=79.0)
    look(cluster, minute=120, xid=79.0)

    assert list(GpuHour.objects.order_by("hour").values_list("xids", flat=True)) == [0, 1]


def test_an_hour_that_cannot_be_written_costs_that_hour_alone(cluster, monkeypatch):
    def refused(*_: object, **__: object) -> None:
        raise DatabaseError("permission denied")

    look(cluster, minute=0)
    look(cluster, minute=1)
    with monkeypatch.context() as patched:
        patched.setattr(hours, "write", refused)
        look(cluster, minute=60)
    for minute in range(61, 121):
        look(cluster, minute=minute)

    assert GpuHour.objects.get().hour == HOUR + timedelta(hours=1)


def test_rubbish_that_is_kept_is_begun_anew(cluster, redis):
    look(cluster, minute=0)
    place = next(key for key in Redis.from_url(redis).keys("*:hour"))
    Redis.from_url(redis).set(place, b"\xc1rubbish")
    look(cluster, minute=1)
    look(cluster, minute=2)
    look(cluster, minute=60)

    assert GpuHour.objects.get().seen_s > 0


def test_without_redis_it_is_said(cluster, settings):
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    with pytest.raises(SnapshotsUnavailable):
        look(cluster, minute=0)


def test_days_of_partitions_and_what_is_too_old_goes(cluster):
    for day in range(3):
        tally = HourTally.begun(said(BEGUN, BOARD), now=BEGUN + 86400 * day)
        at = BEGUN + 86400 * day + 60
        tally.add(said(at, BOARD, **WARM), now=at)
        hours.write(cluster.pk, tally, now=HOUR)
    connection.check_constraints()  # PostgreSQL drops no table whose keys it still has to check
    keep_from = (HOUR + timedelta(days=1)).replace(hour=0)
    gone = hours.forget_before(keep_from)

    assert gone == 1
    assert {row.hour for row in GpuHour.objects.all()} == {HOUR + timedelta(days=1), HOUR + timedelta(days=2)}
    assert hours.forget_before(keep_from) == 0
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_inherits WHERE inhparent = 'health_gpuhour'::regclass")
            assert cursor.fetchone() == (2,)


def test_with_its_cluster_they_go(cluster):
    look(cluster, minute=0)
    look(cluster, minute=1)
    look(cluster, minute=60)
    cluster.delete()

    assert not GpuHour.objects.exists()


def test_idle_time_goes_on_across_the_hour_and_begins_again_after_a_gap(cluster):
    for minute in range(50, 65):
        look(cluster, minute=minute, gpu_utilisation_ratio=0.0)
    assert hours.idle_times(cluster.pk)["n1"]["GPU-0"].measured_s == 13 * 60

    for minute in (150, 151, 152):
        look(cluster, minute=minute, gpu_utilisation_ratio=0.0)
    assert hours.idle_times(cluster.pk)["n1"]["GPU-0"].measured_s == 60
