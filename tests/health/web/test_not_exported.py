"""An exporter with any series taken out: each place says that it is not exported, and none has a number for it."""

import csv
import json
from array import array
from datetime import timedelta
from io import StringIO

import pytest

from fleet.models import ExporterRound, Gpu, Node, Observer
from health.evaluation.gpu_evaluation import evaluate_gpus
from health.evaluation.limits_in_force import LimitsInForce
from health.gpus import roster_cache
from health.gpus.columns import COLUMNS
from health.inbox.plots import RULES, metrics_of, plots_of
from health.models import TelemetrySource
from health.rules.gpus import GPU_RULES
from health.rules.gpus.base import is_any_metric_exported
from health.sources import history, hours, snapshots, source_round
from health.sources.exported_metrics import MISSED
from health.sources.readings import UTILISATION
from health.telemetry.base import TelemetryReading
from health.telemetry.exposition import read_node
from health.telemetry.hours import HourTally
from health.telemetry.metrics import AMD, DCGM, GAUDI, METRICS
from health.telemetry.snapshot import WITHOUT, GpuDevice, MetricColumn, TelemetrySnapshot, no_values
from health.web.map_metrics import MAP_METRICS, NOT_EXPORTED
from tests import make
from tests.health.exporters.reporting import hear_exporters
from tests.health.telemetry.prometheus.a_prometheus import Playing
from tests.health.telemetry.prometheus.a_server import a_server, saying
from tests.make import NOON
from tests.pages import page, visiting
from tests.variants import nightly_but_first

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
    snapshots.forget(row.cluster_id)
    return row


@pytest.fixture
def root():
    return visiting(make.a_user("root", role="admin"))


def hear(node, text, *, by_prometheus):
    """By a Prometheus a row says what it has; of exporters that are asked one by one the frame does."""
    roster_cache.forget()
    TelemetrySource.objects.all().delete()
    ExporterRound.objects.all().delete()
    snapshots.forget(node.cluster_id)
    hear_exporters(node.cluster, {"gpu-1": read_node(text, "gpu-1")}, nodes=["gpu-1"], now=NOON.timestamp() - 5)
    kept = snapshots.newest(node.cluster_id)
    assert kept is not None
    if by_prometheus:
        make.a_source(node.cluster, exported=sorted(kept.exported), devices=1)
    else:
        make.an_exporter_round(node.cluster, read_at=NOON - timedelta(seconds=5), answered=1)


# By day the metrics of a cell, at night each metric.
FEW, EVERY = tuple(key for keys in CELLS for key in keys), tuple(METRICS)


@pytest.mark.parametrize("keys", nightly_but_first([FEW, EVERY]), ids=len)
@pytest.mark.parametrize("by_prometheus", nightly_but_first([True, False]))
def test_each_place_says_what_is_not_exported(node, root, by_prometheus, keys):
    for missing in ((), *((key,) for key in keys), tuple(METRICS)):
        hear(node, a_text(missing), by_prometheus=by_prometheus)
        check(node, root, missing)


@pytest.mark.parametrize("keys", nightly_but_first([FEW, EVERY]), ids=len)
@pytest.mark.parametrize("vendor", ["amd", "habana"])
def test_so_it_is_said_of_other_vendors_gpus(node, root, vendor, keys):
    has = {series.metric for series in VENDORS[vendor][0]}
    for key in (None, *sorted(has.intersection(keys))):
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
        listed = card.partition("Usual metrics that are missing")[2]
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
    source_round._known.clear()
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
    roster_cache.forget()
    make.a_source(node.cluster, url=url, next_look_at=NOON, lease_until=NOON)

    source_round.ask(node.cluster_id, clock=lambda: NOON)

    check(node, root, missing)


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
    snapshot = TelemetrySnapshot(NOON.timestamp(), (GpuDevice("gpu-1", 0, "GPU-a"),))
    snapshot.columns = {key: MetricColumn(no_values(1), array("d", [WITHOUT])) for key in METRICS if key not in missing}
    snapshots.store(node.cluster_id, TelemetryReading(snapshot, frozenset(METRICS) - missing, {}))
    history._kept.clear()

    with a_server(saying(b'{"status":"success","data":{"resultType":"matrix","result":[]}}')) as (url, _):
        make.a_source(node.cluster, url=url, exported=sorted(set(METRICS) - missing))
        told = plots_of(finding, node, now=NOON)

    assert told.not_exported == [METRICS[key].title]
    assert METRICS[key].title not in told.not_drawn


def test_plots_of_a_gpu_of_which_nothing_is_read_call_nothing_exported(node, settings):
    settings.TELEMETRY_LOOPBACK = True
    finding = make.a_finding(node.cluster, "GPU 0 of gpu-1", node=node, rule="gpu-hot")
    snapshots.store(
        node.cluster_id,
        TelemetryReading(TelemetrySnapshot(NOON.timestamp(), (GpuDevice("gpu-1", 0, "GPU-a"),)), frozenset(), {}),
    )
    history._kept.clear()

    with a_server(saying(b'{"status":"success","data":{"resultType":"matrix","result":[]}}')) as (url, _):
        make.a_source(node.cluster, url=url, exported=[])
        told = plots_of(finding, node, now=NOON)

    assert "Temperature" in told.not_exported
    assert told.not_drawn == []


# One exporter without its optional series, walked through: what each place says of it.
WALKED = {"It is unknown which of these GPUs: no source names it": tuple(METRICS), **LEFT}


@pytest.fixture(params=WALKED.values(), ids=WALKED)
def recorded(request, node, settings):
    """Heard by a Prometheus that forgets, with an hour that is over and a node like it."""
    settings.TELEMETRY_LOOPBACK = True
    history._kept.clear()
    Node.objects.update(gpu_product="H100", driver_version="580.1", created_at=NOON - timedelta(days=3))
    pool = make.a_pool(node.cluster, "h100")
    comparable = make.a_node(node.cluster, "gpu-2", gpus=1, gpu_product="H100", driver_version="580.1")
    pool.nodes.add(node, comparable)
    Observer.objects.create(cluster=node.cluster, lease_until=NOON + timedelta(hours=1))
    hear(node, a_text(request.param), by_prometheus=True)
    kept = snapshots.newest(node.cluster_id)
    tally = HourTally.begun(kept.snapshot, now=kept.snapshot.taken_at - 4000)
    for second in range(0, 3600, 60):
        tally.add(kept.snapshot, now=tally.hour + second)
    hours.write(node.cluster_id, tally, now=NOON)
    with a_server(saying(b'{"status":"success","data":{"resultType":"matrix","result":[]}}')) as (url, _):
        TelemetrySource.objects.update(url=url)
        yield node, request.param


def without(missing, *keys) -> bool:
    return set(keys) <= set(missing)


def is_reporting(missing) -> bool:
    """Of whose series none is read nobody hears anything."""
    return len(missing) < len(METRICS)


def test_hours_have_no_number_for_it(recorded, root):
    node, missing = recorded
    busy, warm, xids = (
        without(missing, *UTILISATION), without(missing, "temperature_celsius"), without(missing, "xid"),
    )  # fmt: skip

    for place in (f"nodes/{node.pk}/hours", f"nodes/{node.pk}/gpus/0/hours"):
        if not is_reporting(missing):
            assert not any(each["devices"] for each in root.get(f"/api/v1/{place}").json())
            assert "No hours yet." in page(root, f"/parts/{place}").text
            continue
        (hour,) = (each for each in root.get(f"/api/v1/{place}").json() if each["devices"])
        (said,), text = hour["devices"], page(root, f"/parts/{place}").text

        assert said["seen_s"] > 0
        assert (hour["gpu_hours_busy"] is None, said["busy_s"] is None) == (busy, busy)
        assert (hour["gpu_hours_unknown"] > 0) == busy
        assert {key for key, of in OF_AN_HOUR.items() if said[key] is None} == {
            key for key, of in OF_AN_HOUR.items() if without(missing, *of)
        }
        for is_lacking, words in ((busy, "utilisation unknown"), (warm, "temperature unknown"), (xids, "Xids unknown")):
            assert (words in text) == is_lacking, words


OF_AN_HOUR = {
    "utilisation": UTILISATION, "tensor": ("tensor_active_ratio",), "bandwidth": ("memory_active_ratio",),
    "temperature": ("temperature_celsius",), "temperature_max": ("temperature_celsius",),
    "power_watts": ("power_watts",), "memory_max_mib": ("memory_used_mib",), "xids": ("xid",),
}  # fmt: skip
COMPARED = {
    "Utilisation now, mean": UTILISATION, "Hottest GPU now": ("temperature_celsius",),
    "Power now, mean": ("power_watts",), "Power limit, lowest": ("power_limit_watts",),
    "SM clock now, lowest": ("sm_clock_mhz",), "Memory clock now, lowest": ("memory_clock_mhz",),
    "Uncorrected ECC errors": ("ecc_uncorrected",), "PCIe replays": ("pcie_replays",),
}  # fmt: skip


def test_beside_a_twin_it_has_no_number(recorded, root):
    node, missing = recorded

    comparable = root.get(f"/api/v1/nodes/{node.pk}/comparable").json()
    measured = {one["title"]: one["here"] for one in comparable["measured"]}

    for title, keys in COMPARED.items():
        assert (measured[title] == "not exported") == without(missing, *keys), title
    assert (measured["GPU-hours under load in the last 72 h"] == "") == without(missing, *UTILISATION)
    assert (measured["Xids, at least"] == "") == without(missing, "xid")


def test_plots_say_it_of_each(recorded, root):
    node, missing = recorded

    for place in (f"nodes/{node.pk}/telemetry/history", f"nodes/{node.pk}/gpus/0/telemetry/history"):
        told = root.get(f"/api/v1/{place}").json()
        if not is_reporting(missing):
            assert told["trouble"].startswith("The cluster's Prometheus has no series of ")
            assert told["plots"] == told["not_drawn"] == []
            continue

        lacking = {
            METRICS[key].title for key in history.PLOTTED if without(missing, key, history.INSTEAD.get(key, key))
        }
        assert (told["plots"], told["trouble"]) == ([], "")
        assert set(told["not_exported"]) == lacking
        assert lacking.isdisjoint(told["not_drawn"])


@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume asynchronous")
def test_the_table_of_all_columns_and_its_files_have_no_number_for_it(recorded, root):
    _, missing = recorded
    asked = "q=gpu-1&" + "&".join(f"column={key}" for key in COLUMNS)

    (row,) = csv.DictReader(StringIO(b"".join(root.get(f"/gpus.csv?{asked}")).decode()))
    (gpu,) = json.loads(b"".join(root.get(f"/gpus.json?{asked}")))["gpus"]
    (told,) = root.get(f"/api/v1/gpu-health?{asked}").json()["results"]

    for key in METRICS:
        if key in gpu["metrics"]:
            state = "not-exported" if key in missing else "fresh"
            assert row[f"{key}_state"] == gpu["metrics"][key]["state"] == told["metrics"][key]["state"] == state, key
            assert (row[key] == "") == (gpu["metrics"][key]["value"] is None) == (key in missing), key
    shown = page(root, f"/parts/gpus?{asked}").text
    assert "no data" not in shown
    assert ("not exported" in shown) == bool(missing)


READINGS = ("", "zero", "fresh", "never", "stale")


@pytest.mark.nightly
def test_no_filter_by_its_value_finds_it(recorded, root):
    _, missing = recorded
    turn = list(WALKED.values()).index(missing)

    for number, key in enumerate(missing, turn):  # of one recording each metric is asked for by another reading
        asked, reading = {"q": "gpu-1", "metric": key}, READINGS[number % len(READINGS)]
        found = root.get("/api/v1/gpu-health", asked | ({"reading": reading} if reading else {})).json()
        assert found["results"] == [], (key, reading)
        assert root.get("/api/v1/gpu-health", asked | {"reading": "not-exported"}).json()["count"] == 1, key


def test_pages_that_call_all_well_say_which_rules_read_nothing(recorded, root):
    """Home, the inbox, the pool; each rule's own page, and REST: the same rules."""
    node, missing = recorded
    sees = {rule.key: is_any_metric_exported(rule, set(METRICS) - set(missing)) for rule in GPU_RULES}
    blind = [rule for rule in MISSED if not sees[rule.key]]
    pool = node.pools.get()

    places = [page(root, path).text for path in ("/", "/findings", f"/parts/pools/{pool.pk}/findings")]

    if len(blind) == len(MISSED):
        says = "that rules need is exported"
        assert all("No findings." not in text for text in places)
    else:
        rules, whose = ("1 rule", "its") if len(blind) == 1 else (f"{len(blind)} rules", "their")
        says = f"{rules} cannot check some GPUs: {whose} metrics are not exported there."
    for text in places:
        assert says in text
    for rule in blind:
        assert rule.title in places[1].partition("an exported metric")[2]
    told = {one["rule"]: one for one in root.get("/api/v1/rules").json()}
    for rule in GPU_RULES:
        (cluster,) = told[rule.key]["seen_in"]
        # Of the other node nothing was heard: what any exporter has, its own may have.
        assert cluster["nodes"] == {
            "exported": int(sees[rule.key] and is_reporting(missing)), "not_exported": 0 if sees[rule.key] else 2,
            "never_reported": (1 if is_reporting(missing) else 2) * sees[rule.key],
        }  # fmt: skip
        assert ("no metric that it reads is exported there" in page(root, f"/findings/rules/{rule.key}").text) == (
            not sees[rule.key]
        )


def test_no_finding_is_made_of_it(recorded):
    node, _ = recorded

    evaluated = evaluate_gpus(node.cluster, LimitsInForce(), now=NOON)

    assert evaluated.signals == ()
