"""An exporter with any series taken out: each place says that it is not exported, and none has a number for it."""

from array import array
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command

from fleet.models import ExporterRound, Gpu
from health.gpus import remembered
from health.inbox.plotting import RULES, metrics_of, plots_of
from health.models import TelemetrySource
from health.sources import frames, history, rounds
from health.telemetry.base import TelemetryReading
from health.telemetry.exposition import read_node
from health.telemetry.frame import WITHOUT, Frame, GpuDevice, MetricColumn, unsaid
from health.telemetry.metrics import AMD, DCGM, GAUDI, METRICS
from health.web.map_metrics import MAP_METRICS, NOT_EXPORTED
from tests import make
from tests.health.exporters.hearing import hear_exporters
from tests.health.telemetry.prometheus.a_prometheus import Playing
from tests.health.telemetry.prometheus.a_server import a_server, saying
from tests.make import NOON
from tests.pages import page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now", "redis")]
# All that there is, each metric by DCGM's names for it where it has any.
SERIES = (*DCGM, *(series for series in AMD if series.metric not in {each.metric for each in DCGM}))
SAID = {
    "gpu_utilisation_ratio": 42, "engine_active_ratio": 0.4, "tensor_active_ratio": 0.1, "memory_active_ratio": 0.2,
    "row_remap_failed": 0, "row_remap_pending": 0, "xid": 0, "dcgm_health": 0,
    "called_healthy": 1,
}  # fmt: skip
# What a page shows of a GPU, and which metrics each is made of: it has no value when none of them has.
CELLS = (
    ("temperature_celsius",),
    ("gpu_utilisation_ratio", "engine_active_ratio"),
    ("memory_used_mib",),
    ("power_watts",),
    ("xid",),
)


# How each vendor's exporter names a device, beside a series of it that nobody reads.
VENDORS = {
    "nvidia": (SERIES, 'gpu="0",UUID="GPU-a"', "DCGM_FI_DEV_VGPU_LICENSE_STATUS"),
    "amd": (
        AMD[: len(AMD) // 2],
        'gpu_id="0",serial_number="GPU-a",gpu_compute_partition_type="spx"',
        "gpu_total_vram",
    ),
    "habana": (GAUDI, 'id="0",UUID="GPU-a",Serial="AN1",device="AN1"', "habanalabs_memory_total_bytes"),
}


def a_text(without=(), vendor="nvidia"):
    every, labels, unread = VENDORS[vendor]
    lines = [f"{unread}{{{labels}}} 1"]
    for series in every:
        if series.metric not in without:
            tag = f',{series.label}="{min(series.only, default="1")}"' if series.label else ""
            lines.append(f"{series.name}{{{labels}{tag}}} {SAID.get(series.metric, 33)}")
    return "\n".join(lines) + "\n"


@pytest.fixture
def node():
    row = make.a_node(make.a_cluster("eu-1"), "gpu-1", gpus=1)
    Gpu.objects.update(uuid="GPU-a")
    frames.forget(row.cluster_id)
    return row


@pytest.fixture
def root():
    return visiting(make.a_user("root", role="admin"))


def hear(node, text, *, by_prometheus):
    """By a Prometheus a row says what it has; of exporters that are asked one by one the frame does."""
    remembered.forget()
    TelemetrySource.objects.all().delete()
    ExporterRound.objects.all().delete()
    frames.forget(node.cluster_id)
    hear_exporters(node.cluster, {"gpu-1": read_node(text, "gpu-1")}, nodes=["gpu-1"], now=NOON.timestamp() - 5)
    kept = frames.newest(node.cluster_id)
    assert kept is not None
    if by_prometheus:
        make.a_source(node.cluster, exported=sorted(kept.exported), devices=1)
    else:
        make.an_exporter_round(node.cluster, read_at=NOON - timedelta(seconds=5), answered=1)


@pytest.mark.parametrize("by_prometheus", [True, False])
def test_each_place_says_what_is_not_exported(node, root, by_prometheus):
    for missing in ((), *((key,) for key in METRICS), tuple(METRICS)):
        hear(node, a_text(missing), by_prometheus=by_prometheus)
        check(node, root, missing)


@pytest.mark.parametrize("vendor", ["amd", "habana"])
def test_so_it_is_said_of_other_vendors_gpus(node, root, vendor):
    has = {series.metric for series in VENDORS[vendor][0]}
    for key in (None, *sorted(has)):
        hear(node, a_text((key,), vendor), by_prometheus=True)
        check(node, root, tuple(metric for metric in METRICS if metric not in has or metric == key))


def check(node, root, missing):
    without = sum(all(key in missing for key in keys) for keys in CELLS)
    if len(missing) == len(METRICS):
        without = 1  # of a GPU without any series it is said once for all
    (device,) = root.get(f"/api/v1/nodes/{node.pk}/telemetry").json()["devices"]
    (row,) = root.get("/api/v1/gpu-health").json()["results"]
    page_of_node, table = page(root, f"/parts/nodes/{node.pk}/telemetry").text, page(root, "/parts/gpus").text

    for metrics in (device["metrics"], row["metrics"]):
        states = {key: (read["state"], read["value"] is None) for key, read in metrics.items()}
        assert states == {key: ("not-exported", True) if key in missing else ("fresh", False) for key in metrics}
    assert (table.count("not exported"), page_of_node.count("not exported")) == (without, without), missing
    assert "no data" not in page_of_node
    assert "no data" not in table
    for name, metric in MAP_METRICS.items():
        (byte,) = root.get(f"/parts/fleet/map/metrics/{name}").content
        assert (byte == NOT_EXPORTED) == all(key in missing for key in metric.keys), missing
    card = page(root, f"/parts/clusters/{node.cluster_id}/telemetry").text
    if len(missing) < len(METRICS):
        listed = card.partition("Usual, and not exported")[2]
        assert {key for key in missing if METRICS[key].title in listed} == missed(missing)


def missed(missing):
    """What is said of a whole source: not what one vendor's exporter alone could have."""
    return {key for key in missing if METRICS[key].is_missed}


# What stays where somebody took out all that is not needed to know that there is a GPU.
LEFT = {
    "only what is usual": tuple(key for key, metric in METRICS.items() if not metric.is_usual),
    "only the temperature": tuple(key for key in METRICS if key != "temperature_celsius"),
    "only profiling": tuple(key for key in METRICS if key != "engine_active_ratio"),
}


@pytest.fixture
def server(settings):
    """A Prometheus that has scraped that recording."""
    settings.TELEMETRY_LOOPBACK = True
    history._kept.clear()
    rounds._known.clear()
    playing = Playing(NOON.timestamp())
    with a_server(lambda to: playing(to)) as (url, _):
        yield url, playing


def scrape(playing, missing) -> None:
    playing.series.clear()
    for series in SERIES:
        if series.metric not in missing:
            tag = {series.label: min(series.only, default="1")} if series.label else {}
            labels = {"gpu": "0", "UUID": "GPU-a", "Hostname": "gpu-1", **tag}
            playing.add(series.name, labels, SAID.get(series.metric, 33))


@pytest.mark.parametrize("missing", [*LEFT.values(), ()], ids=[*LEFT, "all"])
def test_a_recording_without_optional_series_through_a_prometheus(node, root, server, missing):
    url, playing = server
    scrape(playing, missing)
    remembered.forget()
    make.a_source(node.cluster, url=url, next_look_at=NOON, lease_until=NOON)

    rounds.ask(node.cluster_id, clock=lambda: NOON)

    check(node, root, missing)
    written = StringIO()
    call_command("add_prometheus", node.cluster.name, url, "--only-try", stdout=written)
    said = written.getvalue().partition("Not exported")[2]
    assert {key for key in missing if METRICS[key].title in said} == missed(missing)
    assert bool(said) == bool(missing)


@pytest.mark.parametrize("missing", LEFT.values(), ids=LEFT)
def test_a_recording_without_optional_series_through_the_exporters(node, root, missing):
    hear(node, a_text(missing), by_prometheus=False)

    check(node, root, missing)


DRAWN = {key: rule for rule in RULES for key in metrics_of(rule)}


@pytest.mark.parametrize("key", DRAWN)
def test_plots_of_a_finding_say_which_of_their_metrics_are_not_exported(node, settings, key):
    settings.TELEMETRY_LOOPBACK = True
    finding = make.a_finding(node.cluster, "GPU 0 of gpu-1", node=node, rule=DRAWN[key])
    missing = {key, history.INSTEAD.get(key, key)}
    frame = Frame(NOON.timestamp(), (GpuDevice("gpu-1", 0, "GPU-a"),))
    frame.columns = {key: MetricColumn(unsaid(1), array("d", [WITHOUT])) for key in METRICS if key not in missing}
    frames.keep(node.cluster_id, TelemetryReading(frame, frozenset(METRICS) - missing, {}))
    history._kept.clear()

    with a_server(saying(b'{"status":"success","data":{"resultType":"matrix","result":[]}}')) as (url, _):
        make.a_source(node.cluster, url=url, exported=sorted(set(METRICS) - missing))
        told = plots_of(finding, node, now=NOON)

    assert told.not_exported == [METRICS[key].title]
    assert METRICS[key].title not in told.not_drawn
