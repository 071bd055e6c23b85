"""An exporter with any series taken out: each place says that it is not exported, and none has a number for it."""

from datetime import timedelta

import pytest

from fleet.models import ExporterRound, Gpu
from health.exporters.framing import keep_frame
from health.gpus import remembered
from health.models import TelemetrySource
from health.sources import frames
from health.telemetry.exposition import read_node
from health.telemetry.metrics import DCGM, METRICS
from health.web.map_metrics import MAP_METRICS, NOT_EXPORTED
from tests import make
from tests.make import NOON
from tests.pages import page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now", "redis")]
SAID = {
    "gpu_utilisation_ratio": 42, "engine_active_ratio": 0.4, "tensor_active_ratio": 0.1, "memory_active_ratio": 0.2,
    "row_remap_failed": 0, "row_remap_pending": 0, "xid": 0, "dcgm_health": 0,
}  # fmt: skip
# What a page shows of a GPU, and which metrics each is made of: it has no value when none of them has.
CELLS = (
    ("temperature_celsius",),
    ("gpu_utilisation_ratio", "engine_active_ratio"),
    ("memory_used_mib",),
    ("power_watts",),
    ("xid",),
)


def a_text(without=()):
    lines = ['DCGM_FI_DEV_VGPU_LICENSE_STATUS{gpu="0",UUID="GPU-a"} 1']  # which nobody reads
    for series in DCGM:
        if series.metric not in without:
            tag = f',{series.label}="{min(series.only, default="1")}"' if series.label else ""
            lines.append(f'{series.name}{{gpu="0",UUID="GPU-a"{tag}}} {SAID.get(series.metric, 33)}')
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
    keep_frame(node.cluster, {"gpu-1": read_node(text, "gpu-1")}, nodes=["gpu-1"], now=NOON.timestamp() - 5)
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
    if TelemetrySource.objects.exists():
        card = page(root, f"/parts/clusters/{node.cluster_id}/telemetry").text
        listed = card.partition("Usual, and not exported")[2]
        assert all(METRICS[key].title in listed for key in missing)
