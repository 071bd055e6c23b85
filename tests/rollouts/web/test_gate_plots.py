"""The plots of gates with a number: threshold, baseline band, changes, query and age of the newest sample."""

from datetime import datetime, timedelta

import pytest

from health.models import GpuHour
from health.sources import history, minutes, snapshots
from health.sources.hours import provide_partition
from health.telemetry.base import TelemetryReading
from health.telemetry.snapshot import GpuDevice
from rollouts.gates.drift import MEASURES
from rollouts.lifecycle import TargetState
from rollouts.models import GateAnswer, ServiceLevelSample, Target, TestJob
from rollouts.queries import gpu_gate_plots
from rollouts.queries.gate_plots import gate_plots, newest_stages
from rollouts.queries.gpu_hours import hours_of
from rollouts.web.gate_plots import draw
from tests import make
from tests.health.conftest import _redis, redis  # noqa: F401 (fixtures)
from tests.health.telemetry.test_hours import said
from tests.make import NOON, a_user
from tests.pages import page, visiting
from tests.rollouts.backtest.story import FEW_GATES, a_halted_plan
from tests.rollouts.rows import an_item, answered

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]
SLO = {"indicator": "vllm-ttft-p99", "at_most": 2, "at_most_worse_percent": 50}


def seen(plan) -> str:
    return page(visiting(a_user("ada", role="operator")), f"/parts/plans/{plan.pk}/gate-plots").text


def plots_of(plan, *, now):
    return gate_plots(plan, newest_stages(plan), now=now)


def test_a_service_level_is_drawn_with_its_limits_baseline_changes_and_query():
    plan = a_halted_plan(gates={**FEW_GATES, "slo": SLO})
    canary = plan.stages.first()
    for minute, value in ((20, 0.4), (30, 0.9)):
        at = NOON + timedelta(minutes=minute)
        row = {"value": value, "samples": 50, "newest_at": at, "baseline": 0.4, "baseline_samples": 50}
        ServiceLevelSample.objects.create(stage=canary, at=at, nodes=["node-0"], **row)

    (plot,) = [plot for plot in plots_of(plan, now=NOON + timedelta(hours=1)) if plot.stage == canary]
    drawn = draw(plot)

    assert [point.value for point in plot.points] == [0.4, 0.9]
    assert [(limit.name, round(limit.value, 3)) for limit in drawn.limits] == [
        ("At most", 2), ("50 % worse than the baseline", 0.6)
    ]  # fmt: skip
    assert (drawn.lowest, drawn.highest, len(drawn.changes)) == (0.4, 0.4, 1)
    assert drawn.limits[0].y < drawn.dots[1][1] < drawn.limits[1].y < drawn.dots[0][1]  # y grows downwards
    assert "vllm:time_to_first_token_seconds" in seen(plan)


def test_the_line_of_a_gate_leads_to_its_first_plot():
    plan = a_halted_plan(gates={**FEW_GATES, "slo": SLO})
    viewer = visiting(a_user("ada", role="operator"))

    lines, plots = (
        viewer.get(path).content.decode() for path in (f"/plans/{plan.pk}", f"/parts/plans/{plan.pk}/gate-plots")
    )

    assert 'href="#plot-0-slo"' in lines
    assert plots.count('id="plot-0-slo"') == 1
    assert 'href="#plot-0-soak"' not in lines


def test_a_gate_without_a_number_says_so():
    plan = a_halted_plan(gates={**FEW_GATES, "slo": SLO})
    at = NOON + timedelta(minutes=50)
    rest = plan.stages.get(name="Rest")
    ServiceLevelSample.objects.create(stage=rest, at=at, nodes=["node-1"], trouble="Prometheus does not answer.")

    text = seen(plan)

    assert "Not measured yet. This is no pass." in text
    assert "Prometheus does not answer. This is no pass." in text


def test_results_of_test_jobs_and_the_work_of_tenants_are_drawn_too():
    job = {"metric": "rate", "at_least": 900}
    plan = a_halted_plan(gates={**FEW_GATES, "test_job": job, "exposure": {"gpu_minutes": 30}})
    canary = plan.stages.first()
    at = NOON + timedelta(minutes=15)
    row = {"node_uid": canary.targets.get().node_uid, "node_name": "node-0", "metric": "rate", "outcome": "passed"}
    row |= {"namespace": "x", "image": "x", "resource": "nvidia.com/gpu", "amount": 1, "intended_at": at}
    TestJob.objects.create(plan=plan, told_at=at, value=950.0, **row)
    answered(canary, "exposure", "wait", evidence=[an_item("Work", 12, "GPU-min")])

    plots = {plot.gate.key: plot for plot in plots_of(plan, now=NOON + timedelta(hours=1)) if plot.stage == canary}

    assert [(point.value, point.name) for point in plots["test_job"].points] == [(950.0, "node-0")]
    assert plots["test_job"].limits == [("At least", 900)]
    assert [point.value for point in plots["exposure"].points] == [12.0]


def test_the_hours_of_slow_drift_are_drawn_with_the_limit_of_the_nodes_own_past():
    plan = a_halted_plan(gates={**FEW_GATES, "drift": {"hours": 1}})
    stage = plan.stages.get(name="Rest")
    target = stage.targets.filter(state="changed").latest("state_since")
    released = datetime.fromisoformat(target.baseline["at"])
    first = released.replace(minute=0, second=0, microsecond=0) - timedelta(hours=5)
    provide_partition(first)
    hours = [(first + timedelta(hours=number), 60.0 + number) for number in range(4)]
    hours.append((target.state_since.replace(minute=0) + timedelta(hours=1), 75.0))
    for at, celsius in hours:
        row = {"seen_s": 3600, "utilisation": 0.5, "temperature": celsius, "throttled": 0.0}
        GpuHour.objects.create(cluster=plan.cluster, uuid="GPU-0", hour=at, node_name=target.node_name, **row)
    now = hours[-1][0] + timedelta(hours=2)
    answered(stage, "drift", "wait", nodes=[target.node_name], cause="Temperature")

    (plot,) = [plot for plot in plots_of(plan, now=now) if plot.stage == stage and plot.gate.key == "drift"]

    assert [point.value for point in plot.points] == [60, 61, 62, 63, 75]
    assert (list(plot.baseline), plot.limits) == ([60, 61, 62, 63], [("At most", pytest.approx(61.5 * 1.1))])
    assert (plot.unit, plot.query) == ("°C", f"Temperature of {target.node_name}, mean of an hour")
    assert (plot.newest_at, plot.changes) == (hours[-1][0] + timedelta(hours=1), [target.state_since])
    assert (
        plot.gate.course(
            MEASURES[3],
            hours_of(plan.cluster_id, (target.node_name,), first, now, 0)[target.node_name],
            released,
            target.state_since,
        ).drifts_since
        == plot.newest_at
    )

    GpuHour.objects.all().delete()
    (empty,) = [
        plot
        for plot in plots_of(plan, now=now + timedelta(minutes=2))
        if plot.stage == stage and plot.gate.key == "drift"
    ]
    assert empty.why_empty == "No whole hour of GPU telemetry yet."


@pytest.mark.usefixtures("redis")
def test_gpu_samples_of_a_changed_node_are_drawn_from_before_its_change():
    plan = a_halted_plan(gates={**FEW_GATES, "thermal": {}, "xid": {}, "nvlink": {}})
    history._kept.clear()
    make.an_exporter_round(plan.cluster, exporters=1, answered=1)
    boards = GpuDevice("node-1", 0, "GPU-a"), GpuDevice("node-1", 1, "GPU-b")
    for minute, celsius, xid in ((40, 60.0, 0.0), (44, 64.0, 0.0), (55, 90.0, 79.0)):
        now = (NOON + timedelta(minutes=minute)).timestamp()
        snapshot = said(now, *boards, temperature_celsius=celsius, xid=xid)
        snapshot.columns["temperature_celsius"].values[1] = 30.0
        snapshot.columns["xid"].values[1] = 13.0 if xid else 0.0  # an application's does not count
        snapshots.store(plan.cluster_id, TelemetryReading(snapshot, frozenset({"temperature_celsius", "xid"}), {}))
        minutes.write_minute(plan.cluster_id, snapshot, assert_lease=lambda: None, now=now)

    plots = {plot.gate.key: plot for plot in plots_of(plan, now=NOON + timedelta(hours=1))}
    heat = plots["thermal"]

    hot = [(point.value, point.name) for point in heat.points][1::2]
    assert hot == [(60, "GPU 0"), (64, "GPU 0"), (90, "GPU 0")]
    assert draw(heat).newest == heat.points[-1]
    assert (list(heat.limits), list(heat.baseline)) == ([("Warning", 83), ("Critical", 85)], [30, 60, 30, 64])
    assert (heat.query, heat.newest_at) == ("DCGM_FI_DEV_GPU_TEMP of node-1", NOON + timedelta(minutes=55))
    assert [point.value for point in plots["xid"].points] == [0, 0, 1, 1]
    assert plots["nvlink"].why_empty
    text = seen(plan)
    assert "DCGM_FI_DEV_XID_ERRORS of node-1" in text


@pytest.mark.parametrize(
    ("drawn", "why"),
    [
        ({"why_none": "No history.", "source_message": "https://prometheus.internal refused"}, "No history."),
        ({"plots": [history.Plot("temperature_celsius", "", "", [history.PlotLine("", None, "", [None])], 0)]},
         "No samples in this time."),
    ],
)  # fmt: skip
def test_a_gate_without_samples_has_no_plot_and_shows_no_address_of_the_source(drawn, why, monkeypatch):
    plan = a_halted_plan(gates={**FEW_GATES, "thermal": {}})
    answer = history.TelemetryHistory("", history.Steps(0.0, 60.0, 1), history.PlotSource.PROMETHEUS, **drawn)
    monkeypatch.setattr(gpu_gate_plots, "drawn_of", lambda *_, **__: answer)

    (plot,) = [plot for plot in plots_of(plan, now=NOON + timedelta(hours=1)) if plot.gate.key == "thermal"]

    assert (plot.why_empty, plot.points) == (why, ())


def test_a_plan_without_a_changed_node_shows_no_panel():
    plan = a_halted_plan()
    Target.objects.update(state=TargetState.HELD)

    assert "Numbers behind the gates" not in seen(plan)


def test_a_gate_that_judges_nodes_is_drawn_as_nodes_that_do_not_pass():
    plan = a_halted_plan(gates=FEW_GATES)
    stage = next(stage for stage in plan.stages.order_by("-index") if stage.targets.filter(state="changed").exists())
    GateAnswer.objects.filter(stage=stage).delete()
    rows = ((0, "wait", "to-come", [], 2), (5, "fail", "bad", ["node-1", "node-2"], 9), (9, "pass", "", [], 12))
    for since, answer, cause, nodes, at in rows:
        GateAnswer.objects.create(
            stage=stage, gate="driver_version", answer=answer, cause=cause, nodes=nodes, title="x", is_current=at == 12,
            since=NOON + timedelta(minutes=since), at=NOON + timedelta(minutes=at),
        )  # fmt: skip
    answered(stage, "failure_budget", "pass")

    plots = {plot.gate.key: plot for plot in plots_of(plan, now=NOON + timedelta(hours=1)) if plot.stage == stage}
    shown = plots["driver_version"]

    minutes_and_nodes = [(int((point.at - NOON).total_seconds() / 60), point.value) for point in shown.points]
    assert minutes_and_nodes == [(0, 0), (2, 0), (5, 2), (9, 2), (9, 0), (12, 0)]
    assert (shown.limits, shown.is_quiet, plots["failure_budget"].is_quiet) == ([("At most", 0)], False, True)
    assert "1 gate that passed or named no node" in seen(plan)


def test_an_answer_about_no_node_is_no_sample():
    plan = a_halted_plan(gates=FEW_GATES)
    stage = next(stage for stage in plan.stages.order_by("-index") if stage.targets.filter(state="changed").exists())
    GateAnswer.objects.filter(stage=stage).delete()
    answered(stage, "driver_version", "wait", cause="unseen")

    (plot,) = [one for one in plots_of(plan, now=NOON) if one.gate.key == "driver_version" and one.stage == stage]
    assert (plot.points, plot.why_empty, plot.is_quiet) == ([], "No node was evaluated yet.", False)
