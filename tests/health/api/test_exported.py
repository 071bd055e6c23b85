"""On which nodes of a cluster each metric is exported, as REST has it, whoever tells of its GPUs."""

import math
from array import array
from datetime import timedelta

import pytest

from health.sources import snapshots
from health.telemetry.base import TelemetryReading
from health.telemetry.metrics import METRICS
from health.telemetry.snapshot import GpuDevice, MetricColumn, TelemetrySnapshot
from tests import make
from tests.callers import calling
from tests.make import NOON

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now", "redis")]


@pytest.fixture
def cluster():
    """Of four nodes one exports the temperature and two something else; the last was never heard."""
    row = make.a_cluster("eu-1")
    for number in range(4):
        make.a_node(row, f"gpu-{number}")
    make.a_node(row, "cpu-1", gpus=0, is_gpu_node=False)
    return row


def heard(cluster) -> None:
    devices = tuple(GpuDevice(f"gpu-{number}", 0, f"GPU-{number}") for number in range(3))
    warm, busy = (array("d", at) for at in ([NOON.timestamp(), math.nan, math.nan], [NOON.timestamp()] * 3))
    columns = {"temperature_celsius": MetricColumn(warm[:], warm), "gpu_utilisation_ratio": MetricColumn(busy[:], busy)}
    snapshots.forget(cluster.pk)
    snapshots.store(
        cluster.pk, TelemetryReading(TelemetrySnapshot(NOON.timestamp(), devices, columns), frozenset(columns), {})
    )


def told(caller, cluster) -> dict:
    answer = caller.get(f"/api/v1/clusters/{cluster.pk}/exported-metrics")
    assert answer.status_code == 200
    return answer.json()


@pytest.mark.parametrize("by_prometheus", [True, False])
def test_it_says_on_how_many_nodes_each_metric_is_exported(bob, cluster, by_prometheus):
    heard(cluster)
    if by_prometheus:
        make.a_source(cluster, exported=["temperature_celsius", "gpu_utilisation_ratio"])
    else:
        make.an_exporter_round(cluster, read_at=NOON, answered=3)

    said = told(bob, cluster)

    assert said["is_reporting"]
    assert said["nodes"]["temperature_celsius"] == {"exported": 1, "not_exported": 2, "never_reported": 1}
    assert said["nodes"]["gpu_utilisation_ratio"] == {"exported": 3, "not_exported": 0, "never_reported": 1}
    assert said["nodes"]["xid"] == {"exported": 0, "not_exported": 4, "never_reported": 0}
    assert {key: sum(nodes.values()) for key, nodes in said["nodes"].items()} == dict.fromkeys(METRICS, 4)
    assert "temperature_celsius" not in said["not_exported"]
    assert {"power_watts", "memory_used_mib"} <= set(said["not_exported"])
    if by_prometheus:
        (source,) = bob.get("/api/v1/telemetry-sources").json()["results"]
        assert {key: source[key] for key in ("nodes", "not_exported", "to_be_switched_on")} == {
            key: said[key] for key in ("nodes", "not_exported", "to_be_switched_on")
        }


def test_of_one_that_fell_silent_it_says_what_it_had(bob, cluster):
    heard(cluster)
    make.an_exporter_round(cluster, read_at=NOON - timedelta(hours=1), answered=3)

    said = told(bob, cluster)

    assert (said["is_reporting"], said["nodes"]["temperature_celsius"]["exported"]) == (False, 1)


@pytest.mark.parametrize("has_source", [True, False])
def test_where_nothing_ever_answered_nobody_knows(bob, cluster, has_source):
    snapshots.forget(cluster.pk)
    if has_source:
        make.a_source(cluster, state="waiting", answered_at=None, exported=[])

    said = told(bob, cluster)

    assert (said["is_reporting"], said["nodes"], said["not_exported"], said["to_be_switched_on"]) == (
        False,
        None,
        [],
        [],
    )


def test_who_sees_only_a_pool_is_told_why_not_and_a_stranger_nothing(eve, cluster):
    viewer = calling(make.a_user("pia", role="viewer", on=make.a_pool(cluster)))
    path = f"/api/v1/clusters/{cluster.pk}/exported-metrics"

    assert (viewer.get(path).status_code, eve.get(path).status_code) == (403, 404)
