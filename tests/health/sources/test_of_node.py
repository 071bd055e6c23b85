import math
from array import array
from datetime import timedelta

import pytest

from health.models import TelemetrySource
from health.sources import snapshots
from health.sources.cluster_telemetry import telemetry_of_clusters
from health.sources.manual_refresh import SourceOff, ask_now
from health.sources.node_telemetry import source_state, telemetry_of
from health.sources.readings import ReadingState
from health.telemetry.base import DeviceXid, TelemetryReading
from health.telemetry.snapshot import GpuDevice, MetricColumn, TelemetrySnapshot
from tests import make
from tests.make import NOON

pytestmark = pytest.mark.django_db
AT = NOON.timestamp() - 5


def keep(cluster, *devices: GpuDevice, xids=None, **columns: list[float]) -> None:
    """What a source said five seconds ago."""
    snapshot = TelemetrySnapshot(NOON.timestamp(), devices)
    for key, values in columns.items():
        times = array("d", [math.nan if math.isnan(value) else AT for value in values])
        snapshot.columns[key] = MetricColumn(array("d", values), times)
    snapshots.store(cluster.pk, TelemetryReading(snapshot, frozenset(columns), xids or {}))


@pytest.fixture
def node(redis):
    row = make.a_node(make.a_cluster(), "gpu-1", gpus=2)
    snapshots.forget(row.cluster_id)
    return row


def test_each_device_has_what_was_said_of_it(node):
    make.a_source(node.cluster, exported=["temperature_celsius", "xid"])
    keep(
        node.cluster, GpuDevice("gpu-1", 0, "GPU-a"), GpuDevice("gpu-1", 1, "GPU-b"),
        temperature_celsius=[0.0, math.nan], xid=[79.0, 0.0],
        xids={("GPU-a", ""): DeviceXid(79, "GPU has fallen off the bus")},
    )  # fmt: skip

    first, second = telemetry_of(node, now=NOON).devices

    assert (first.name, first.metrics["temperature_celsius"].value) == ("GPU 0", 0.0)
    assert (first.metrics["xid"].value, first.xid_words) == (79.0, "GPU has fallen off the bus")
    assert second.metrics["temperature_celsius"].state is ReadingState.NEVER
    assert second.xid_words == ""


def test_a_gpu_that_the_source_never_named_is_there_all_the_same(node):
    make.a_source(node.cluster)
    keep(node.cluster, GpuDevice("gpu-1", 0, "GPU-a"), temperature_celsius=[61.0])

    devices = telemetry_of(node, now=NOON).devices

    assert [(device.name, device.is_exported) for device in devices] == [("GPU 0", True), ("GPU 1", False)]


def test_slices_stand_after_their_board(node):
    make.a_source(node.cluster)
    slices = [GpuDevice("gpu-1", 0, "GPU-a", gi_id, "1g.18gb") for gi_id in ("11", "7")]
    keep(node.cluster, GpuDevice("gpu-1", 0, "GPU-a"), *slices, GpuDevice("gpu-1", 1, "GPU-b"))

    devices = telemetry_of(node, now=NOON).devices

    assert [device.name for device in devices] == ["GPU 0", "GPU 0 slice 7", "GPU 0 slice 11", "GPU 1"]
    assert [device.is_mig for device in devices] == [True, True, True, False]


def test_without_redis_it_is_silent_and_says_why(node, settings):
    make.a_source(node.cluster)
    settings.REDIS_URL = "redis://127.0.0.1:1/0"

    known = telemetry_of(node, now=NOON)

    assert known.trouble.startswith("Redis does not answer")
    assert {device.metrics["xid"].state for device in known.devices} == {ReadingState.SOURCE_SILENT}


@pytest.mark.parametrize(
    ("given", "has_source", "is_silent"),
    [
        ({}, True, False),
        ({"state": "silent"}, True, True),
        ({"state": "waiting", "answered_at": None}, True, True),
        ({"answered_at": NOON - timedelta(minutes=5)}, True, True),
        ({"state": "off", "is_on": False}, False, False),
    ],
)
def test_how_it_stands_with_a_source(given, has_source, is_silent):
    standing = source_state(make.a_source(make.a_cluster(), **given), None, now=NOON)

    assert (standing.has_source, standing.is_silent) == (has_source, is_silent)


def test_asking_at_once_makes_it_due():
    source = make.a_source(make.a_cluster())

    ask_now(source, now=NOON)

    assert list(TelemetrySource.objects.due(now=NOON)) == [source.cluster_id]


def test_asking_at_once_never_puts_it_off():
    source = make.a_source(make.a_cluster(), next_look_at=NOON - timedelta(minutes=1))

    ask_now(source, now=NOON)

    assert TelemetrySource.objects.get().next_look_at == NOON - timedelta(minutes=1)


def test_one_that_was_switched_off_meanwhile_is_not_asked():
    source = make.a_source(make.a_cluster())
    TelemetrySource.objects.update(is_on=False)

    with pytest.raises(SourceOff):
        ask_now(source, now=NOON)


def test_a_node_that_no_frame_has_is_of_a_cluster_whose_exporters_have_the_metric(node):
    make.an_exporter_round(node.cluster)
    other = make.a_node(node.cluster, "gpu-2")
    keep(node.cluster, GpuDevice("gpu-1", 0, "GPU-a"), temperature_celsius=[61.0])

    first = telemetry_of(other, now=NOON).devices[0]

    of_cluster = telemetry_of_clusters([node.cluster_id], ["temperature_celsius", "xid"], now=NOON)[node.cluster_id]
    for key, state in (("temperature_celsius", ReadingState.NEVER), ("xid", ReadingState.NOT_EXPORTED)):
        there = of_cluster.read(key, None, node="gpu-2", vendor="", now=NOON.timestamp())
        assert first.metrics[key].state is there.state is state
