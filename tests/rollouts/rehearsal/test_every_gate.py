"""A rehearsal of a healthy driver passes each gate of the catalogue, or names the gate as not rehearsed.

What the live fleet cannot tell a gate is a wait in the rehearsal too.
"""

from array import array
from dataclasses import replace
from typing import Any

import pytest
from django.conf import settings
from redis import Redis

from fleet.models import Node, Pod
from gpu.labels import GPU
from health.models import TelemetrySource
from health.sources import snapshots
from health.telemetry.base import TelemetryReading
from health.telemetry.metrics import METRICS
from health.telemetry.snapshot import GpuDevice, MetricColumn, TelemetrySnapshot
from rollouts.gates import GATES
from rollouts.models import MaintenanceWindow
from rollouts.rehearsal.faults import FAULTS
from rollouts.rehearsal.run import RehearsalResult, Unending, rehearse
from rollouts.rehearsal.virtual_plan import virtual_plan
from tests.callers import now  # noqa: F401 (a fixture)
from tests.health.conftest import _redis, redis  # noqa: F401 (fixtures)
from tests.make import NOON, a_node, a_pod, a_source, a_window
from tests.rollouts.rows import CANARY, REST, a_draft, a_driver_cluster

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis", "now")]

TOKENS = {"expression": 'min(tokens{node=~"{{nodes}}"})', "higher_is_better": True}
SCORE = {"metric": "score"}
OPTIONS: list[tuple[str, dict[str, Any]]] = [
    *((key, {"allow_unknown": True} if key == "compatibility" else {}) for key in GATES),
    ("approval", {"groups": {"sre": 1, "platform": 1}}),
    ("exposure", {"gpu_minutes": 10, "nodes": 1}),
    ("slo", {"at_most": 2}),
    ("slo", {"at_most_worse_percent": 0, "at_most": 4000}),
    ("slo", TOKENS | {"at_least": 2000}),
    ("slo", TOKENS | {"at_least": 2000, "at_most": 2100, "min_samples": 5000}),
    ("test_job", SCORE | {"at_least": 2000}),
    ("test_job", SCORE | {"at_most": 5, "higher_is_better": False}),
    ("test_job", SCORE | {"at_most_worse_percent": 10}),
    ("window", {"must_last_s": 3600}),
]
SLOWER = [each for each in OPTIONS if each[0] == "slo" or each[1].get("metric")]


@pytest.fixture
def live():
    """Four busy nodes whose exporters export every metric, with room for the pods of one and a window every night."""
    cluster = a_driver_cluster(nodes=4, version="570.172.08")
    a_source(cluster, exported=[*METRICS])
    a_window(cluster)
    a_node(cluster, "spare", labels={})
    Node.objects.update(layout={}, allocatable={GPU: 8}, requested={}, is_ready=True, physical_gpus=1)
    for node in cluster.nodes.exclude(name="spare"):
        a_pod(node, f"model-on-{node.name}", is_ready=True, ready_since=NOON, priority_class="")
    report(cluster, METRICS)
    return cluster


def report(cluster, metrics) -> None:
    """Stores what the exporters export, and nothing else."""
    Redis.from_url(settings.REDIS_URL).flushall()
    devices = tuple(GpuDevice(node.name, 0, f"GPU-{node.name}") for node in cluster.nodes.all())
    frame, values = TelemetrySnapshot(NOON.timestamp(), devices), array("d", [0.0] * len(devices))
    for key in metrics:
        frame.columns[key] = MetricColumn(values, array("d", [NOON.timestamp()] * len(devices)))
    snapshots.store(cluster.pk, TelemetryReading(frame, frozenset(metrics), {}))


def rehearsed(cluster, owner, key: str, options: dict[str, Any], fault: str = "") -> RehearsalResult:
    """The canary has the gate; one that decides no pass has another beside it."""
    gates = {"driver_version": {}, key: options}
    plan = a_draft(cluster, owner, stages=(replace(CANARY, count=2), REST))
    plan.stages.update(gate_options=gates)
    played = virtual_plan(plan, FAULTS.get(fault), seed=1, now=NOON)
    rehearsed_keys = {gate.key for stage in played.stages for gate in stage.gates}
    assert key in rehearsed_keys or GATES[key].title in played.not_rehearsed
    return rehearse(played.fleet, played.stages, begins=NOON)


@pytest.mark.parametrize(("key", "options"), OPTIONS, ids=str)
def test_a_healthy_driver_passes(live, owner, key: str, options: dict[str, Any]):
    outcome = rehearsed(live, owner, key, options)

    assert outcome.stopped_by == ""
    assert outcome.passed == (0, 1)


@pytest.mark.parametrize(("key", "options"), SLOWER, ids=str)
def test_a_number_that_gets_worse_does_not_pass(live, owner, key: str, options: dict[str, Any]):
    outcome = rehearsed(live, owner, key, options | {"at_most_worse_percent": 10}, "slower")

    assert outcome.passed == ()
    assert outcome.gate == key


@pytest.mark.parametrize(
    ("key", "spoil", "says"),
    [
        ("ecc", lambda cluster: report(cluster, ["temperature_celsius"]), "not exported by 2 nodes"),
        ("telemetry_fresh", lambda _: TelemetrySource.objects.all().delete(), "has no GPU telemetry"),
        ("slo", lambda _: TelemetrySource.objects.all().delete(), "cannot be measured"),
        ("exposure", lambda _: Pod.objects.tenants().delete(), "No tenant or test Job has used"),
        ("headroom", lambda _: Node.objects.update(requested={GPU: 8}), "fits on no other node"),
        ("window", lambda _: MaintenanceWindow.objects.all().delete(), "No maintenance window covers"),
    ],
)
def test_what_the_live_fleet_does_not_tell_is_a_wait(live, owner, key: str, spoil, says: str):
    spoil(live)

    outcome = rehearsed(live, owner, key, {})

    assert outcome.passed == ()
    assert says in outcome.stopped_by
    assert "a person decides" in outcome.stopped_by


def test_windows_that_never_open_again_end_the_rehearsal(live, owner):
    MaintenanceWindow.objects.update(rule="FREQ=DAILY;COUNT=1")

    with pytest.raises(Unending, match="does not open again"):
        rehearsed(live, owner, "soak", {})
