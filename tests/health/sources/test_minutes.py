import math
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fleet import retention
from fleet.models import LostLease
from health.models import GpuMinuteBlock
from health.sources import minutes
from health.telemetry.prometheus.ranges import Steps
from health.telemetry.snapshot import GpuDevice
from tests import make
from tests.health.telemetry.test_hours import said
from tests.make import NOON

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite]
AT = NOON.timestamp()
BOARD = GpuDevice("gpu-1", 0, "GPU-a")


@pytest.fixture
def cluster():
    return make.a_cluster()


def keep(cluster, *devices: GpuDevice, minute: float, assert_lease=lambda: None, **values: float) -> None:
    now = AT + 60 * minute
    minutes.write_minute(cluster.pk, said(now, *(devices or (BOARD,)), **values), assert_lease=assert_lease, now=now)


def line(cluster, device: GpuDevice = BOARD, *, first: float = 0, number: int = 3, metric: str = "power_watts"):
    asked = Steps(AT + 60 * first, 60, number)
    found = minutes.minutes_of(cluster.pk, "gpu-1", [device.key], [metric], asked)
    values = found.get((metric, device.key))
    return None if values is None else [None if math.isnan(value) else value for value in values]


def test_what_was_kept_is_read_back_across_blocks_with_its_gaps(cluster):
    for minute in (13, 14, 16):
        keep(cluster, minute=minute, power_watts=100.0 + minute)

    assert line(cluster, first=13, number=5) == [113, 114, None, 116, None]
    assert line(cluster, first=14, number=1) == [114]
    assert line(cluster, first=17) == [None, None, None]


def test_a_minute_is_written_once(cluster):
    keep(cluster, minute=0, power_watts=100.0)
    keep(cluster, minute=0.5, power_watts=200.0)

    assert line(cluster) == [100, None, None]


def test_a_node_that_said_nothing_has_no_row(cluster):
    keep(cluster, minute=0, ecc_corrected=1.0)

    assert not GpuMinuteBlock.objects.exists()


def test_who_lost_the_lease_writes_nothing(cluster):
    def lost() -> None:
        raise LostLease("it is another worker's")

    with pytest.raises(LostLease):
        keep(cluster, minute=0, power_watts=100.0, assert_lease=lost)

    assert not GpuMinuteBlock.objects.exists()


def test_a_board_that_moved_to_another_node_leaves_its_past_there(cluster):
    keep(cluster, minute=0, power_watts=100.0)
    keep(cluster, GpuDevice("gpu-2", 0, "GPU-a"), minute=1, power_watts=200.0)

    assert line(cluster) == [100, None, None]


def test_what_another_version_wrote_is_no_sample_and_is_written_over(cluster):
    keep(cluster, minute=0, power_watts=100.0)
    for packed in (b"", b"\xc1", minutes.msgspec.msgpack.encode({"devices": [], "columns": {"xid": b"\0\0"}})):
        GpuMinuteBlock.objects.update(packed=packed)
        assert line(cluster) is None

    keep(cluster, minute=1, power_watts=200.0)

    assert line(cluster) == [None, 200, None]


def test_blocks_go_once_no_window_reaches_them(cluster):
    for minute in (0, 15):
        keep(cluster, minute=minute, power_watts=100.0)

    retention.tidy(now=NOON + timedelta(hours=24, minutes=16))

    assert [row.begins_at for row in GpuMinuteBlock.objects.all()] == [NOON + timedelta(minutes=15)]


@pytest.mark.parametrize(("nodes", "queries"), [(1, 3), (50, 3), (200, 9)])
def test_fifty_nodes_cost_two_queries(cluster, nodes, queries):
    """One asks whether the minute is there already; then each transaction reads and writes its rows."""
    devices = [GpuDevice(f"gpu-{number:03}", 0, f"GPU-{number}") for number in range(nodes)]

    with CaptureQueriesContext(connection) as asked:
        keep(cluster, *devices, minute=0, power_watts=1.0)

    assert len([each for each in asked if "SAVEPOINT" not in each["sql"]]) == queries


def test_a_day_of_a_node_is_one_query(cluster):
    keep(cluster, minute=0, power_watts=1.0)

    with CaptureQueriesContext(connection) as asked:
        line(cluster, number=1440)

    assert len(asked) == 1
