"""On how many nodes a metric is exported: the same as is said of each of them, and each node once."""

import math
from array import array

import pytest

from fleet.models import Node
from health.rules.gpus import GPU_RULES
from health.rules.gpus.base import is_any_metric_exported
from health.sources import snapshots
from health.sources.cluster_telemetry import standings_of, telemetry_of_clusters
from health.sources.exported_metrics import NodesCounted, exporting_of
from health.telemetry.base import TelemetryReading
from health.telemetry.metrics import METRICS, exportable
from health.telemetry.snapshot import WITHOUT, GpuDevice, MetricColumn, TelemetrySnapshot
from tests import make
from tests.make import NOON

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]
AT = NOON.timestamp() - 5
LAST_SAMPLE_AT = {
    "nv-1": ("nvidia", {"temperature_celsius", "xid", "ecc_corrected"}),
    "nv-2": ("nvidia", {"temperature_celsius", "xid"}),
    "amd-1": ("amd", {"temperature_celsius", "called_healthy"}),
    "nothing-read": ("intel", set()),
}
NEVER_HEARD = {"nv-3": "nvidia", "amd-2": "amd", "whose": ""}


def keep(cluster, *, exported=None, at=AT) -> None:
    devices = tuple(GpuDevice(node, 0, f"GPU-{node}") for node in LAST_SAMPLE_AT)
    snapshot = TelemetrySnapshot(NOON.timestamp(), devices)
    for key in set().union(*(has for _, has in LAST_SAMPLE_AT.values())):
        times = array("d", [at if key in LAST_SAMPLE_AT[device.node_name][1] else math.nan for device in devices])
        snapshot.columns[key] = MetricColumn(times[:], times)
    snapshots.store(cluster.pk, TelemetryReading(snapshot, frozenset(exported or snapshot.columns), {}))


@pytest.fixture
def cluster():
    row = make.a_cluster("eu-1")
    for name, vendor in {**{node: vendor for node, (vendor, _) in LAST_SAMPLE_AT.items()}, **NEVER_HEARD}.items():
        make.a_node(row, name, gpu_vendor=vendor)
    make.a_node(row, "no-gpus", is_gpu_node=False)
    snapshots.forget(row.pk)
    return row


def counted(cluster):
    return exporting_of(standings_of([cluster.pk], now=NOON), Node.objects.all())[cluster.pk]


def by_a_prometheus(cluster):
    make.a_source(cluster, exported=["called_healthy", "ecc_corrected", "temperature_celsius", "xid"])


def by_exporters(cluster):
    make.an_exporter_round(cluster, read_at=NOON, answered=len(LAST_SAMPLE_AT))


@pytest.mark.parametrize("reporting_devices", [by_a_prometheus, by_exporters])
@pytest.mark.parametrize("at", [AT, WITHOUT], ids=["with values", "series without a value"])
def test_each_node_is_counted_once_and_as_it_is_said_of_it(cluster, reporting_devices, at):
    reporting_devices(cluster)
    keep(cluster, at=at)

    exporting, telemetry = counted(cluster), telemetry_of_clusters([cluster.pk], METRICS, now=NOON)[cluster.pk]

    assert exporting.of == len(LAST_SAMPLE_AT) + len(NEVER_HEARD)
    assert exporting.never_reported == len(NEVER_HEARD)
    for key in METRICS:
        said = exporting.of_metric(key)
        its = {row.name: telemetry.is_exported(key, row.name, row.gpu_vendor) for row in Node.objects.with_gpus()}
        assert said.of == exporting.of
        assert said == NodesCounted(
            exported=sum(its[name] for name in LAST_SAMPLE_AT),
            not_exported=sum(not has for has in its.values()),
            never_reported=sum(its[name] for name in NEVER_HEARD),
        )
    assert exporting.of_metric("xid") == (2, 3, 2)  # AMD's exporters never have it, heard or not


def test_a_rule_sees_where_it_has_anything_to_read(cluster):
    by_a_prometheus(cluster)
    keep(cluster)

    exporting = counted(cluster)

    for rule in GPU_RULES:
        said = exporting.of_rule(rule)
        assert said.of == exporting.of
        assert said.exported == sum(is_any_metric_exported(rule, has) for _, has in LAST_SAMPLE_AT.values())
        assert said.not_exported == exporting.number_of(exporting.blind(rule))


def test_what_the_source_has_no_more_is_exported_nowhere(cluster):
    make.a_source(cluster, exported=["temperature_celsius"])
    keep(cluster, exported=["temperature_celsius"])

    assert counted(cluster).of_metric("xid") == (0, exporting_nodes := len(LAST_SAMPLE_AT) + len(NEVER_HEARD), 0)
    assert counted(cluster).of_metric("temperature_celsius").of == exporting_nodes


def test_without_a_frame_what_its_row_says_may_be_of_any_node(cluster):
    make.a_source(cluster, exported=["temperature_celsius", "xid"])

    exporting = counted(cluster)

    assert exporting.never_reported == exporting.of
    assert exporting.of_metric("xid") == (0, 3, 4)  # Intel's and AMD's never have it
    assert exporting.of_metric("ecc_corrected") == (0, 7, 0)


def test_of_exporters_without_a_frame_nobody_knows(cluster):
    by_exporters(cluster)

    assert exporting_of(standings_of([cluster.pk], now=NOON), Node.objects.all()) == {}


def test_nobody_knows_without_a_source(cluster):
    keep(cluster)

    assert exporting_of(standings_of([cluster.pk], now=NOON), Node.objects.all()) == {}


def test_nodes_that_somebody_does_not_see_are_not_counted(cluster):
    by_a_prometheus(cluster)
    keep(cluster)
    seen = Node.objects.filter(name__startswith="nv-")

    exporting = exporting_of(standings_of([cluster.pk], now=NOON), seen)[cluster.pk]

    assert exporting.of_metric("ecc_corrected") == (1, 1, 1)


def test_of_a_vendor_that_nobody_names_everything_may_be_exported():
    assert exportable("") == frozenset(METRICS)
