"""The evidence of a finding as lines: what its rule reads, its limit, when it began, and why there is nothing."""

import json
from array import array
from datetime import timedelta

import pytest

from health.inbox.plots import is_plotted, limits_for, limits_of, metrics_of, plots_of, unit_of_limits
from health.models import Finding, PoolLimits
from health.rules.gpus import GPU_RULES
from health.rules.limits import Comparing
from health.sources import history, snapshots
from health.telemetry.base import TelemetryReading
from health.telemetry.snapshot import WITHOUT, GpuDevice, MetricColumn, TelemetrySnapshot, no_values
from tests import make
from tests.health.telemetry.prometheus.a_server import a_server, saying
from tests.make import NOON

TEMPERATURE = "DCGM_FI_DEV_GPU_TEMP"
BEGAN = NOON - timedelta(hours=2)
HOT = {"rule": "gpu-hot", "facts": {"temperature_celsius": 92, "warn": 83, "critical": 85, "limits_of": "a pool"}}


@pytest.mark.parametrize("rule", GPU_RULES, ids=lambda rule: rule.key)
def test_every_rule_about_gpus_has_lines_and_each_once(rule):
    metrics = metrics_of(rule.key)

    assert len(metrics) == len(set(metrics)) >= 4
    assert not {"xid", "clock_reasons"} & set(metrics)


@pytest.mark.parametrize("rule", [rule for rule in GPU_RULES if isinstance(rule, Comparing)], ids=lambda rule: rule.key)
def test_a_limit_is_drawn_or_said_to_be_none_that_a_line_shows(rule):
    wholes = {"memory_used_mib": 70, "memory_free_mib": 30, "power_limit_watts": 700}
    finding = Finding(rule=rule.key, facts={**wholes, **rule.limits.facts})

    assert bool(limits_of(finding)) != bool(unit_of_limits(finding))


def test_limits_are_those_that_it_was_judged_by_in_the_unit_of_the_plot():
    hot = Finding(**HOT)
    full = Finding(
        rule="gpu-memory-nearly-full",
        facts={"memory_used_mib": 950, "memory_free_mib": 50, "warn": 90, "critical": None},
    )
    quiet = Finding(rule="gpu-nvlink-quiet", facts={"nvlink_mib_per_s": 9, "peers_median": 1000, "warn": 75})

    assert [(one.severity, one.value) for one in limits_of(hot)["temperature_celsius"]] == [
        ("warning", 83),
        ("critical", 85),
    ]
    assert [(one.severity, one.value) for one in limits_of(full)["memory_used_mib"]] == [("warning", 900)]
    assert [(one.severity, one.value) for one in limits_of(quiet)["nvlink_mib_per_s"]] == [("warning", 250)]


def test_a_limit_that_nobody_kept_is_not_drawn():
    assert limits_of(Finding(rule="gpu-hot", facts={})) == {"temperature_celsius": []}
    assert limits_of(Finding(rule="gpu-memory-nearly-full", facts={"warn": 90})) == {"memory_used_mib": []}
    assert limits_of(Finding(rule="node-not-ready", facts={"warn": 90})) == {}


@pytest.fixture
def node(db, redis, settings):
    settings.TELEMETRY_LOOPBACK = True
    history._kept.clear()
    row = make.a_node(make.a_cluster(), "gpu-1", gpus=2)
    devices = (GpuDevice("gpu-1", 0, "GPU-a"), GpuDevice("gpu-1", 1, "GPU-b"))
    snapshot = TelemetrySnapshot(NOON.timestamp(), devices)
    without = MetricColumn(no_values(2), array("d", [WITHOUT] * 2))
    snapshot.columns = {"temperature_celsius": without, "power_watts": without.copied()}
    snapshots.forget(row.cluster_id)
    snapshots.store(row.cluster_id, TelemetryReading(snapshot, frozenset({"temperature_celsius", "power_watts"}), {}))
    return row


def answer(*rows: tuple[str, str, str, list[tuple[float, float]]]):
    """Of each its metric, UUID and slice."""
    result = [
        {
            "metric": {"__name__": name, "UUID": uuid, "GPU_I_ID": gi_id},
            "values": [[at, str(value)] for at, value in values],
        }
        for name, uuid, gi_id, values in rows
    ]
    return saying(json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}).encode())


def test_draws_half_an_hour_on_both_sides_with_its_gpu_first(node):
    finding = make.a_finding(node.cluster, "GPU 1 of gpu-1", node=node, since=BEGAN, opened_at=BEGAN, **HOT)
    began = BEGAN.timestamp()
    a_gap = [(began - 30, 70), (began, 92)]

    with a_server(answer((TEMPERATURE, "GPU-a", "", a_gap), (TEMPERATURE, "GPU-b", "", a_gap))) as (url, server):
        make.a_source(node.cluster, url=url)
        told = plots_of(finding, node, now=NOON)

    assert (told.times[0], told.times[-1], told.asked.step_s) == (began - 1800, began + 1800, 15)
    (plot,) = told.plots
    assert [(line.name, line.is_subject) for line in plot.lines] == [("GPU 1", True), ("GPU 0", False)]
    at = told.times.index(began)
    assert plot.lines[0].values[at - 2 : at + 2] == [70.0, None, 92.0, None]
    assert [limit.value for limit in plot.limits] == [83, 85]
    assert [(mark.kind, mark.sentence) for mark in told.marks] == [("finding", "It began")]
    assert len(server.queries) == 1


def test_under_mig_the_line_of_its_board_is_its_own_whichever_slice_says_it(node):
    slices = [GpuDevice("gpu-1", index, f"GPU-{index}", gi_id) for index in (0, 1) for gi_id in ("7", "8")]
    snapshots.store(node.cluster_id, TelemetryReading(TelemetrySnapshot(NOON.timestamp(), slices), frozenset(), {}))
    finding = make.a_finding(node.cluster, "GPU 1 of gpu-1, slice 8", node=node, since=BEGAN, **HOT)
    hot, busy = [(BEGAN.timestamp(), 92)], [(BEGAN.timestamp(), 0.92)]

    rows = [(TEMPERATURE, one.uuid, one.gi_id, hot) for one in slices]
    engines = [("DCGM_FI_PROF_GR_ENGINE_ACTIVE", one.uuid, one.gi_id, busy) for one in slices]
    with a_server(answer(*rows, *engines)) as (url, _):
        make.a_source(node.cluster, url=url)
        drawn = {plot.key: plot.lines for plot in plots_of(finding, node, now=NOON).plots}

    boards, slices = drawn["temperature_celsius"], drawn["gpu_utilisation_ratio"]
    assert [(line.name, line.is_subject) for line in boards] == [("GPU 1", True), ("GPU 0", False)]
    assert [line.name for line in slices if line.is_subject] == ["GPU 1 slice 8"]


@pytest.mark.parametrize("nobody", [{"is_shadow": True}, {"state": "muted"}], ids=str)
def test_when_it_was_confirmed_is_not_that_anybody_was_told(node, nobody):
    told = {"since": BEGAN, "opened_at": BEGAN + timedelta(minutes=5)}
    finding = make.a_finding(node.cluster, "GPU 1 of gpu-1", node=node, **told, **HOT, **nobody)

    assert [mark.sentence for mark in plots_of(finding, node, now=NOON).marks] == ["It began", "It was confirmed"]


def test_what_is_not_exported_is_told_from_what_has_no_sample(node):
    finding = make.a_finding(node.cluster, "GPU 1 of gpu-1", node=node, since=BEGAN, **HOT)

    with a_server(answer()) as (url, _):
        make.a_source(node.cluster, url=url, exported=["temperature_celsius", "power_watts"])
        told = plots_of(finding, node, now=NOON)

    assert told.not_drawn == ["Temperature", "Power"]
    assert told.not_exported == ["Utilisation", "SM clock"]


def test_of_one_that_began_lately_nothing_is_drawn_beyond_now(node):
    finding = make.a_finding(node.cluster, "GPU 1 of gpu-1", node=node, since=NOON - timedelta(minutes=5), **HOT)

    assert plots_of(finding, node, now=NOON).times[-1] == NOON.timestamp()


def test_what_happened_after_its_time_is_no_mark_of_it(node):
    finding = make.a_finding(node.cluster, "GPU 1 of gpu-1", node=node, since=BEGAN, opened_at=BEGAN, **HOT)
    make.a_node_event(node, "The driver is 2.", at=BEGAN + timedelta(minutes=20))
    make.a_node_event(node, "The driver is 3.", at=NOON - timedelta(minutes=1))

    assert [mark.sentence for mark in plots_of(finding, node, now=NOON).marks] == ["It began", "The driver is 2."]


def test_a_silent_source_says_since_when(node):
    make.a_source(node.cluster, state="silent", state_since=NOON - timedelta(minutes=9))
    finding = make.a_finding(node.cluster, "node gpu-1", node=node, rule="exporter-silent")

    assert is_plotted(finding)
    assert plots_of(finding, node, now=NOON).silent_since == NOON - timedelta(minutes=9)


def test_without_its_node_it_has_no_plot(node):
    assert not is_plotted(make.a_finding(node.cluster, "GPU 1 of gpu-1", **HOT))
    assert not is_plotted(make.a_finding(node.cluster, node=node, rule="node-not-ready"))


@pytest.mark.django_db
def test_of_a_gpu_those_that_hold_now_are_drawn_its_pools_before_ours():
    cluster = make.a_cluster()
    usual, own = make.a_pool(cluster, "usual"), make.a_pool(cluster, "warm")
    PoolLimits.objects.create(
        pool=own, rule="gpu-hot", warn=95, warn_after_s=300, by="ada", at=NOON, reason="Warm water."
    )

    def levels(pool) -> dict[str, list[float]]:
        return {key: [limit.value for limit in its] for key, its in limits_for(make.a_node(cluster, pool=pool)).items()}

    assert levels(usual) == {"temperature_celsius": [83, 85]}, (
        "nothing of what is nearly full: it is no fault by itself"
    )
    assert levels(own) == {"temperature_celsius": [95]}
