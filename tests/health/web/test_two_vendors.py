"""A cluster with GPUs of two vendors, and exporters that do not have the same metrics: each node is said its own."""

import csv
import json
from datetime import timedelta
from io import StringIO

import pytest

from fleet.models import Gpu, Node
from health.gpus import roster_cache
from health.sources import history, snapshots, source_round
from health.telemetry.exposition import read_node
from health.telemetry.metrics import AMD, DCGM, METRICS, exportable
from health.web.map_metrics import NO_DATA, NOT_EXPORTED
from tests import make
from tests.health.exporters.reporting import hear_exporters
from tests.health.telemetry.prometheus.a_prometheus import Playing
from tests.health.telemetry.prometheus.a_server import a_server
from tests.make import NOON
from tests.pages import page, visiting
from tests.variants import nightly_but_first

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now", "redis")]
BY_DCGM = {
    "DCGM_FI_DEV_GPU_TEMP": 61, "DCGM_FI_DEV_GPU_UTIL": 40, "DCGM_FI_DEV_FB_USED": 1024, "DCGM_FI_DEV_FB_FREE": 79000,
    "DCGM_FI_DEV_POWER_USAGE": 300, "DCGM_FI_DEV_XID_ERRORS": 0, "DCGM_FI_DEV_ROW_REMAP_FAILURE": 0,
}  # fmt: skip
BY_AMD = {"gpu_junction_temperature": 55, "gpu_used_vram": 2048, "gpu_health": 1, "gpu_ecc_correct_total": 0}
HAS_NVIDIA = {series.metric for series in DCGM if series.name in BY_DCGM}
HAS_AMD = {series.metric for series in AMD if series.name in BY_AMD}
NVIDIA = {"gpu": "0", "UUID": "GPU-a", "Hostname": "nv-1", "modelName": "NVIDIA H100"}
OF_AMD = {"gpu_id": "0", "serial_number": "AMD-1", "hostname": "amd-1", "gpu_compute_partition_type": "spx"}


@pytest.fixture
def cluster():
    """With a third node, of AMD's GPUs, whose exporter was never heard."""
    row = make.a_cluster("eu-1")
    for name, vendor in (("nv-1", "nvidia"), ("amd-1", "amd"), ("amd-2", "amd")):
        make.a_node(row, name, gpus=1, gpu_vendor=vendor)
    Gpu.objects.filter(node__name="nv-1").update(uuid="GPU-a")
    roster_cache.forget()
    snapshots.forget(row.pk)
    return row


@pytest.fixture
def root():
    return visiting(make.a_user("root", role="admin"))


def text_of(series, labels) -> str:
    written = ",".join(f'{name}="{value}"' for name, value in labels.items())
    return "".join(f"{name}{{{written}}} {value}\n" for name, value in series.items())


def by_exporters(cluster, settings) -> None:
    said = {"nv-1": text_of(BY_DCGM, NVIDIA), "amd-1": text_of(BY_AMD, OF_AMD)}
    told = {node: read_node(text, node) for node, text in said.items()}
    hear_exporters(cluster, told, nodes=["nv-1", "amd-1", "amd-2"], now=NOON.timestamp() - 5)
    make.an_exporter_round(cluster, read_at=NOON - timedelta(seconds=5), answered=2)


def by_prometheus(cluster, settings) -> None:
    settings.TELEMETRY_LOOPBACK = True
    history._kept.clear()
    source_round._known.clear()
    playing = Playing(NOON.timestamp())
    for series, labels in ((BY_DCGM, NVIDIA), (BY_AMD, OF_AMD)):
        for name, value in series.items():
            playing.add(name, labels, value)
    with a_server(lambda to: playing(to)) as (url, _):
        make.a_source(cluster, url=url, next_look_at=NOON, lease_until=NOON)
        source_round.ask(cluster.pk, clock=lambda: NOON)


@pytest.fixture(params=nightly_but_first([by_exporters, by_prometheus]), ids=["by exporters", "by a Prometheus"])
def told(request, cluster, settings):
    request.param(cluster, settings)
    return cluster


def states(metrics) -> dict[str, str]:
    return {key: reading["state"] for key, reading in metrics.items()}


def expected(has, without="not-exported", but="fresh") -> dict[str, str]:
    return {key: but if key in has else without for key in METRICS}


NODES = {"nv-1": expected(HAS_NVIDIA), "amd-1": expected(HAS_AMD)}
# Of an exporter that nobody ever heard: that it has what others have, nobody knows; what it cannot have, it has not.
NODES["amd-2"] = expected((HAS_NVIDIA | HAS_AMD) & exportable("amd"), but="never")


@pytest.mark.parametrize("name", NODES)
def test_rest_says_of_each_node_what_its_own_exporter_lacks(told, root, name):
    node = Node.objects.get(name=name)

    (device,) = root.get(f"/api/v1/nodes/{node.pk}/telemetry").json()["devices"]
    (row,) = root.get(f"/api/v1/gpu-health?q={name}").json()["results"]

    assert states(device["metrics"]) == NODES[name]
    assert states(row["metrics"]) == {key: NODES[name][key] for key in row["metrics"]}


SAID = {
    "nv-1": ("61 °C", "40%", "1.0 GiB", "300 W", "none"),
    "amd-1": ("55 °C", "not exported", "2.0 GiB", "not exported", "not exported"),
    "amd-2": ("never seen", "never seen", "never seen", "never seen", "not exported"),
}


@pytest.mark.parametrize("name", ["nv-1", "amd-1"])
def test_its_page_and_that_of_its_gpu_say_it(told, root, name):
    node, said = Node.objects.get(name=name), SAID[name]

    for place in (f"/parts/nodes/{node.pk}/telemetry", f"/parts/nodes/{node.pk}/gpus/0/telemetry"):
        shown = page(root, place).text
        assert all(words in shown for words in said)
        assert "never seen" not in shown
        assert shown.count("not exported") >= said.count("not exported")


@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume asynchronous")
@pytest.mark.parametrize("name", NODES)
def test_table_and_files_say_it(told, root, name):
    shown = page(root, f"/parts/gpus?q={name}").text
    (row,) = csv.DictReader(StringIO(b"".join(root.get(f"/gpus.csv?q={name}")).decode()))
    (gpu,) = json.loads(b"".join(root.get(f"/gpus.json?q={name}")))["gpus"]

    whole = SAID[name] if name != "amd-2" else ("never seen",)  # said once, of who was never heard
    assert [shown.count(words) for words in ("not exported", "never seen")] == [
        whole.count("not exported"), whole.count("never seen"),
    ]  # fmt: skip
    for key in ("temperature_celsius", "xid", "power_watts"):
        assert row[f"{key}_state"] == gpu["metrics"][key]["state"] == NODES[name][key]
        assert (row[key] == "") == (gpu["metrics"][key]["value"] is None) == (NODES[name][key] != "fresh")


@pytest.mark.parametrize(
    ("metric", "reading", "found"),
    [
        ("xid", "not-exported", ["amd-1", "amd-2"]),
        ("xid", "never", []),
        ("power_watts", "not-exported", ["amd-1"]),
        ("power_watts", "never", ["amd-2"]),
        ("called_healthy", "not-exported", ["nv-1"]),
        ("called_healthy", "fresh", ["amd-1"]),
    ],
)
def test_the_table_is_filtered_by_it(told, root, metric, reading, found):
    rows = root.get(f"/api/v1/gpu-health?metric={metric}&reading={reading}&ordering=node").json()["results"]

    assert [row["node"]["name"] for row in rows] == found


def test_the_map_has_it(told, root):
    warm, busy = (list(root.get(f"/parts/fleet/map/metrics/{each}").content) for each in ("temperature", "utilisation"))

    assert warm == [61, 55, NO_DATA]
    assert busy == [40, NOT_EXPORTED, NO_DATA]


def counts(key) -> dict[str, int]:
    its = [NODES[name][key] for name in NODES]
    return {
        "exported": its.count("fresh"),
        "not_exported": its.count("not-exported"),
        "never_reported": its.count("never"),
    }


def test_on_how_many_nodes_it_is_exported_is_the_same_everywhere(told, root):
    """As it is said of each of them, and each is counted once."""
    card = page(root, f"/parts/clusters/{told.pk}/telemetry").text
    exported_alike = {(key in HAS_NVIDIA, key in HAS_AMD, key in exportable("amd")): key for key in METRICS}
    assert len(exported_alike) == 6
    for key in exported_alike.values():
        its, metric = counts(key), METRICS[key]
        assert sum(its.values()) == len(NODES)
        partly = f"{metric.title} (not on {its['not_exported']} of 3 nodes)"
        assert (partly in card) == (key in HAS_NVIDIA | HAS_AMD and its["not_exported"] > 0), key
        found = {
            state: len({row["node"]["name"] for row in rows(root, metric=key, reading=state)})
            for state in ("fresh", "not-exported", "never")
        }
        assert found == dict(zip(found, its.values(), strict=True)), key
    assert "No data for a day 1 of 3 nodes with GPUs" in card
    for source in root.get("/api/v1/telemetry-sources").json()["results"]:
        assert source["nodes"] == {key: counts(key) for key in METRICS}


def rows(root, **asked):
    return root.get("/api/v1/gpu-health", asked).json()["results"]


def test_rules_say_of_how_many_nodes_they_see_nothing(told, root):
    rules = {row["rule"]: row for row in root.get("/api/v1/rules").json()}
    shown = page(root, "/findings/rules/gpu-xid").text

    assert rules["gpu-xid"]["seen_in"] == [{"cluster": "eu-1", "nodes": counts("xid")}]
    assert rules["gpu-hot"]["seen_in"] == [{"cluster": "eu-1", "nodes": counts("temperature_celsius")}]
    assert "Sees part of eu-1: 2 of 3 nodes export no metric of this rule" in shown
    listed = page(root, "/findings/rules").text
    assert "not exported on 2 of 3 nodes" in listed
    assert "no telemetry from 1 of 3 nodes" in listed
