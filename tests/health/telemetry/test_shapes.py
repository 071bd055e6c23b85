"""Each shape of what exporters write, read as its exporter's text and as a Prometheus that scraped it answers."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from health.telemetry import promql
from health.telemetry.exporter import read_devices
from health.telemetry.exposition import read_node
from health.telemetry.identity import Whereabouts
from health.telemetry.prometheus.client import Address, Client
from health.telemetry.prometheus.source import Prometheus
from tests.health.telemetry.prometheus.a_prometheus import Playing
from tests.health.telemetry.prometheus.a_server import a_server
from tests.health.telemetry.shapes import DCGM_SHAPES, EXPORTER_POD, SHAPES

NOW = 1_000_000.0
WHERE = Whereabouts(frozenset({"gpu-1", "gpu-2"}), {EXPORTER_POD: "gpu-1"})


def scraped(text):
    """What a Prometheus keeps of it: lines whose value is no number would cost it all, so that they are not there."""
    playing = Playing(NOW)
    lines = [line for line in text.splitlines() if "ERROR - " not in line and "Tesla T4" not in line]
    for family in text_string_to_metric_families("\n".join(lines) + "\n"):
        for sample in family.samples:
            playing.add(sample.name, sample.labels, sample.value)
    return playing


@pytest.mark.parametrize("called", SHAPES)
def test_an_exporters_text_is_read(called):
    shape = SHAPES[called]

    said = read_node(shape.text, "gpu-1")

    assert {key: pytest.approx(values) for key, values in said.values.items()} == shape.values
    assert {key: device.index for key, device in said.devices.items() if device.index} == shape.index
    assert {device.node_name for device in said.devices.values()} <= {"gpu-1"}


@pytest.mark.parametrize("called", SHAPES)
def test_what_a_prometheus_has_of_it_is_read_alike(called):
    shape = SHAPES[called]

    with a_server(scraped(shape.text)) as (url, _), Client(Address(url, may_be_loopback=True)) as client:
        taken = Prometheus(client, promql.Matchers(), WHERE, lambda: NOW).take(None, now=NOW)

    columns, devices = taken.snapshot.columns, taken.snapshot.devices
    values = {
        device.key: {
            metric: pytest.approx(column.values[at])
            for metric, column in columns.items()
            if column.values[at] == column.values[at]
        }
        for at, device in enumerate(devices)
    }
    assert values == ({} if shape.is_unplaced else shape.values)
    assert {device.node_name for device in devices} <= {"gpu-1"}
    assert {device.key: device.index for device in devices if device.index} == shape.index
    assert bool(taken.notes) == (shape.is_unplaced or not shape.values or "glitches" in called)


@pytest.mark.parametrize("called", DCGM_SHAPES)
def test_who_holds_each_is_read(called):
    shape = DCGM_SHAPES[called]

    found = {(each.uuid, each.gi_id): [pod.name for pod in each.pods] for each in read_devices(shape.text)}

    assert {key: pods for key, pods in found.items() if pods} == shape.pods
    assert set(found) == set(shape.values)
