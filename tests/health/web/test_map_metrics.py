"""The map by a metric: a byte for each of its cells, and no number where nobody said one."""

import math
from array import array
from datetime import timedelta

import pytest
from django.urls import reverse

from fleet.web.node_map import SeenMap
from health.models import TelemetrySource
from health.sources import snapshots
from health.sources.cluster_telemetry import boards_in
from health.telemetry.base import TelemetryReading
from health.telemetry.snapshot import GpuDevice, MetricColumn, TelemetrySnapshot
from health.web.map_metrics import MOST, NO_DATA, NOT_EXPORTED, NOT_OF_NOW, cells_of
from tests import make
from tests.make import NOON
from tests.pages import visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now", "redis")]
AT = NOON.timestamp() - 5
UNSAID = math.nan


@pytest.fixture
def viewer():
    return visiting(make.a_user(role="viewer"))


def tell(cluster, *devices: GpuDevice, at: float = AT, **columns: list[float]) -> None:
    snapshot = TelemetrySnapshot(AT, devices)
    for key, values in columns.items():
        snapshot.columns[key] = MetricColumn(array("d", values), array("d", [at] * len(values)))
    snapshots.store(cluster.pk, TelemetryReading(snapshot, frozenset(columns), {}))


def coloured(client, name: str = "temperature") -> list[int]:
    response = client.get(f"/parts/fleet/map/metrics/{name}")
    assert response.status_code == 200
    return list(response.content)


def test_it_stands_where_the_map_looks_for_it():
    assert reverse("map-metric", args=["temperature"]) == f"{reverse('fleet-map')}/metrics/temperature"


def test_each_gpu_has_its_byte_at_its_index_and_zero_is_not_unknown(viewer):
    cluster = make.a_cluster()
    make.a_node(cluster, "gpu-1", gpus=3)
    make.a_node(cluster, "gpu-2", gpus=2)
    make.a_source(cluster, exported=["temperature_celsius", "gpu_utilisation_ratio", "engine_active_ratio"])
    tell(
        cluster, GpuDevice("gpu-1", 0, "a"), GpuDevice("gpu-1", 2, "c"), GpuDevice("gpu-2", 0, "d"),
        temperature_celsius=[61.9, 0.0, UNSAID], gpu_utilisation_ratio=[0.004, 1.0, 0.0],
    )  # fmt: skip

    assert coloured(viewer) == [61, NO_DATA, 0, NO_DATA, NO_DATA]
    assert coloured(viewer, "utilisation") == [1, NO_DATA, 100, 0, NO_DATA]


def test_what_no_ratio_is_takes_no_map_away(viewer):
    cluster = make.a_cluster()
    make.a_node(cluster, "gpu-1", gpus=2)
    make.a_source(cluster, exported=["gpu_utilisation_ratio"])
    devices = GpuDevice("gpu-1", 0, "a"), GpuDevice("gpu-1", 1, "b")
    tell(cluster, *devices, gpu_utilisation_ratio=[1e307, -1e307])

    assert coloured(viewer, "utilisation") == [MOST, 0]


@pytest.mark.parametrize(
    ("source", "age_s", "byte"),
    [
        ({}, 5, 61),
        ({}, 300, NOT_OF_NOW),
        ({"state": "silent"}, 5, NOT_OF_NOW),
        ({"answered_at": NOON - timedelta(minutes=9)}, 5, NOT_OF_NOW),
        ({"state": "off", "is_on": False}, 5, NO_DATA),
        ({}, 90_000, NO_DATA),
        ({}, -3_600, NO_DATA),
    ],
)
def test_what_is_not_of_now_has_no_number(viewer, source, age_s, byte):
    cluster = make.a_cluster()
    make.a_node(cluster, "gpu-1", gpus=1)
    make.a_source(cluster, **source)
    tell(cluster, GpuDevice("gpu-1", 0, "a"), at=NOON.timestamp() - age_s, temperature_celsius=[61.0])

    assert coloured(viewer) == [byte]


def test_what_says_how_busy_a_gpu_is_now_stands_before_what_said_it(viewer):
    cluster = make.a_cluster()
    make.a_node(cluster, "gpu-1", gpus=2)
    make.a_source(cluster, exported=["engine_active_ratio"])
    snapshot = TelemetrySnapshot(AT, (GpuDevice("gpu-1", 0, "a"), GpuDevice("gpu-1", 1, "b")))
    snapshot.columns["gpu_utilisation_ratio"] = MetricColumn(array("d", [0.9, 0.8]), array("d", [AT - 3600] * 2))
    snapshot.columns["engine_active_ratio"] = MetricColumn(array("d", [0.25, 0.1]), array("d", [AT, AT - 7200]))
    snapshots.store(cluster.pk, TelemetryReading(snapshot, frozenset({"engine_active_ratio"}), {}))

    assert coloured(viewer, "utilisation") == [25, NOT_OF_NOW]


def test_what_is_not_exported_is_not_what_nobody_heard(viewer):
    cluster = make.a_cluster()
    make.a_node(cluster, "gpu-1", gpus=2)
    make.a_source(cluster, exported=["power_watts"])
    tell(cluster, GpuDevice("gpu-1", 0, "a"), power_watts=[300.0])

    assert coloured(viewer) == [NOT_EXPORTED, NOT_EXPORTED]

    TelemetrySource.objects.update(state="silent")

    assert coloured(viewer) == [NO_DATA, NO_DATA]


def test_under_mig_the_engine_says_how_busy_a_board_is_and_its_slices_how_warm(viewer):
    cluster = make.a_cluster()
    make.a_node(cluster, "gpu-1", gpus=2)
    make.a_source(cluster, exported=["temperature_celsius", "gpu_utilisation_ratio", "engine_active_ratio"])
    tell(
        cluster, GpuDevice("gpu-1", 0, "a"), GpuDevice("gpu-1", 0, "a", "1"), GpuDevice("gpu-1", 1, "b", "1"),
        temperature_celsius=[50.0, 50.0, 70.0], gpu_utilisation_ratio=[0.0, 0.0, 0.0],
        engine_active_ratio=[0.4, 0.9, 0.9],
    )  # fmt: skip

    assert coloured(viewer) == [50, 70]
    assert coloured(viewer, "utilisation") == [40, NO_DATA]


def test_under_mig_what_says_how_busy_whole_gpus_are_is_not_what_says_it_of_a_board(viewer):
    """As the table of GPUs has it."""
    cluster = make.a_cluster()
    make.a_node(cluster, "gpu-1", gpus=3)
    make.a_source(cluster, exported=["gpu_utilisation_ratio"])
    tell(
        cluster, GpuDevice("gpu-1", 0, "a", "1"), GpuDevice("gpu-1", 1, "b"), GpuDevice("gpu-1", 2, "c"),
        gpu_utilisation_ratio=[0.0, 0.3, UNSAID],
    )  # fmt: skip

    assert coloured(viewer, "utilisation") == [NOT_EXPORTED, 30, NO_DATA]


def test_a_board_without_an_index_and_one_too_many_never_move_another():
    boards = boards_in(GpuDevice("gpu-1", index, uuid) for index, uuid in [(None, "x"), (1, "b"), (1, "c"), (9, "d")])

    assert list(cells_of(bytes([10, 11, 12, 13]), boards.every, boards.by_node["gpu-1"], 3)) == [10, 11, 12]


def test_who_sees_a_pool_has_the_bytes_of_its_nodes_alone():
    cluster = make.a_cluster()
    mine = make.a_pool(cluster, "mine")
    make.a_node(cluster, "theirs", gpus=1)
    make.a_node(cluster, "mine", pool=mine, gpus=1)
    make.a_source(cluster)
    tell(cluster, GpuDevice("mine", 0, "a"), GpuDevice("theirs", 0, "b"), temperature_celsius=[41.0, 99.0])

    assert coloured(visiting(make.a_user("pat", role="viewer", on=mine))) == [41]
    assert coloured(visiting(make.a_user("eve"))) == []


def test_redis_that_is_away_leaves_every_gpu_unknown(viewer, settings):
    cluster = make.a_cluster()
    make.a_node(cluster, "gpu-1", gpus=2)
    make.a_source(cluster)
    settings.REDIS_URL = "redis://127.0.0.1:1"

    assert coloured(viewer) == [NO_DATA, NO_DATA]


def test_bytes_of_another_index_are_refused_and_a_metric_that_there_is_not_is_not_there(viewer):
    user = make.a_user("root", role="admin")
    make.counted()
    version = SeenMap.by(user).version

    assert viewer.get(f"/parts/fleet/map/metrics/temperature?index={version}").status_code == 200
    assert viewer.get("/parts/fleet/map/metrics/temperature?index=other").status_code == 409
    assert viewer.get("/parts/fleet/map/metrics/secret").status_code == 404


def test_it_is_not_sent_again_and_costs_no_query_more_for_more_gpus(viewer, queries_of):
    cluster = make.a_cluster()
    make.a_node(cluster, "gpu-1", gpus=1)
    make.a_source(cluster)
    tell(cluster, GpuDevice("gpu-1", 0, "a"), temperature_celsius=[41.0])
    path = "/parts/fleet/map/metrics/temperature"
    few = queries_of(viewer, path)
    etag = viewer.get(path)["ETag"]

    assert viewer.get(path, headers={"If-None-Match": etag}).status_code == 304

    for number in range(5):
        make.a_node(cluster, f"more-{number}")
    assert queries_of(viewer, path) == few
    assert TelemetrySource.objects.count() == 1


def test_of_one_cluster_only_its_own_bytes_are_fetched(viewer):
    for name, celsius in (("gpu-1", 61.0), ("gpu-2", 47.0)):
        cluster = make.a_cluster()
        make.a_node(cluster, name, gpus=1)
        make.a_source(cluster)
        tell(cluster, GpuDevice(name, 0, name), temperature_celsius=[celsius])

    assert coloured(viewer) == [61, 47]
    assert coloured(viewer, f"temperature?cluster={cluster.pk}") == [47]


@pytest.mark.parametrize("asked", ["x", "0", "99999999999999999999999", "-1"])
def test_a_cluster_that_nobody_sees_here_has_no_bytes(viewer, asked):
    theirs = make.a_cluster()
    make.a_node(theirs, gpus=1)
    bob = visiting(make.a_user(role="viewer", on=make.a_cluster()))

    assert viewer.get(f"/parts/fleet/map/metrics/temperature?cluster={asked}").status_code == 404
    assert bob.get(f"/parts/fleet/map/metrics/temperature?cluster={theirs.pk}").status_code == 404
