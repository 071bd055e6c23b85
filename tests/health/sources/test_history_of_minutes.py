"""Plots of a cluster without a Prometheus, from the minutes that are kept of its exporters."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fleet.models import ExportersState
from health.inbox.plots import plots_of, plots_of_gpu
from health.sources import history, minutes, snapshots
from health.sources.history import PlotSource, history_of
from health.telemetry.base import TelemetryReading
from health.telemetry.snapshot import GpuDevice
from tests import make
from tests.callers import calling
from tests.health.telemetry.prometheus.a_server import a_closed_port
from tests.health.telemetry.test_hours import said
from tests.make import NOON

pytestmark = pytest.mark.django_db
AT = NOON.timestamp()
BOARD, OTHER = GpuDevice("gpu-1", 0, "GPU-a"), GpuDevice("gpu-1", 1, "GPU-b")
SOON = "The first points appear within two minutes."


@pytest.fixture(autouse=True)
def _here(redis):
    history._kept.clear()


@pytest.fixture
def node():
    row = make.a_node(make.a_cluster(), "gpu-1", gpus=2)
    snapshots.forget(row.cluster_id)
    make.an_exporter_round(row.cluster, exporters=1, answered=1)
    return row


def hear(node, *devices: GpuDevice, minute: float, **values: float) -> None:
    """So many minutes after noon, as a round keeps it."""
    now = AT + 60 * minute
    snapshot = said(now, *(devices or (BOARD,)), **values)
    snapshots.store(node.cluster_id, TelemetryReading(snapshot, frozenset(values), {}))
    minutes.write_minute(node.cluster_id, snapshot, assert_lease=lambda: None, now=now)


def values_of(told, key: str) -> dict[str, list[float | None]]:
    return {line.device.uuid: line.values for plot in told.plots if plot.key == key for line in plot.lines}


@pytest.mark.parametrize(("window", "points"), [("1h", 61), ("6h", 361), ("24h", 1441)])
def test_each_window_is_drawn_minute_by_minute_and_a_gap_stays_a_gap(node, window, points):
    for minute, power in ((-5, 100.0), (-4, 0.0), (-1, 300.0), (0, 400.0)):
        hear(node, minute=minute, power_watts=power)

    told = history_of(node, window, now=NOON)

    (values,) = values_of(told, "power_watts").values()
    assert (told.drawn_from, told.trouble, told.asked.step_s) == (PlotSource.EXPORTERS, "", 60)
    assert (len(values), told.times[-1]) == (points, AT)
    assert values[-7:] == [None, 100, 0, None, None, 300, 400]
    assert set(values[:-7]) == {None}


def test_what_is_not_exported_and_what_only_a_prometheus_keeps_are_told_apart(node):
    hear(node, minute=0, power_watts=100.0, ecc_corrected=0.0)

    told = history_of(node, "1h", now=NOON)

    assert "Temperature" in told.not_exported
    assert told.not_kept == ["ECC errors corrected"]
    assert told.not_drawn == []


def test_an_exporter_that_fell_silent_ends_its_line_and_is_no_zero(node):
    hear(node, minute=-10, power_watts=100.0)

    told = history_of(node, "1h", now=NOON)

    (values,) = values_of(told, "power_watts").values()
    assert [place for place, value in enumerate(values) if value is not None] == [50]


def test_a_swapped_board_is_not_spliced(node):
    hear(node, BOARD, OTHER, minute=-2, power_watts=100.0)
    swapped = GpuDevice("gpu-1", 1, "GPU-new")
    hear(node, BOARD, OTHER, swapped, minute=0, power_watts=200.0)

    lines = values_of(history_of(node, "1h", now=NOON), "power_watts")

    assert {uuid: values[-3:] for uuid, values in lines.items()} == {
        "GPU-a": [100, None, 200],
        "GPU-b": [100, None, 200],
        "GPU-new": [None, None, 200],
    }


def test_one_gpu_and_a_finding_are_drawn_from_the_same_minutes(node):
    hear(node, BOARD, OTHER, minute=0, temperature_celsius=91.0)
    gpu = node.gpus.select_related("node__cluster").get(index=1)
    node.gpus.filter(index=1).update(uuid="GPU-b")
    gpu.refresh_from_db()
    hot = make.a_finding(node.cluster, "GPU 0 of gpu-1", node=node, rule="gpu-hot", since=NOON - timedelta(minutes=1))

    one, found = plots_of_gpu(gpu, "1h", now=NOON), plots_of(hot, node, now=NOON)

    assert set(values_of(one, "temperature_celsius")) == {"GPU-b"}
    assert [line.is_subject for plot in found.plots for line in plot.lines] == [True, False]
    assert found.plots[0].lines[0].values[-1] == 91


def test_marks_where_an_xid_became_another(node):
    for minute, xid in ((-2, 0.0), (-1, 79.0), (0, 79.0)):
        hear(node, minute=minute, xid=xid, power_watts=100.0)

    (mark,) = history_of(node, "1h", now=NOON).marks

    assert (mark.sentence, mark.at) == ("Xid 79 on GPU 0", NOON - timedelta(minutes=1))


def test_under_mig_the_engine_is_drawn(node):
    cut = GpuDevice("gpu-1", 0, "GPU-a", "7")
    hear(node, BOARD, cut, minute=0, gpu_utilisation_ratio=0.0, engine_active_ratio=0.5)

    (plot,) = history_of(node, "1h", now=NOON).plots

    assert {(line.metric, line.values[-1]) for line in plot.lines} == {("engine_active_ratio", 0.5)}


def test_of_who_has_the_earlier_minutes_only_the_later_are_asked_for(node):
    hear(node, minute=0, power_watts=100.0)

    told = history_of(node, "24h", since=AT - 61, now=NOON)

    assert told.times == [AT - 60, AT]


def test_where_a_prometheus_is_on_it_is_the_source(node, settings):
    settings.TELEMETRY_LOOPBACK = True
    hear(node, minute=0, power_watts=100.0)
    source = make.a_source(node.cluster, url=f"http://127.0.0.1:{a_closed_port()}")

    assert history_of(node, "1h", now=NOON).drawn_from is PlotSource.PROMETHEUS
    source.state = "off"
    source.save()
    told = history_of(node, "1h", now=NOON)
    assert (told.drawn_from, [plot.key for plot in told.plots]) == (PlotSource.EXPORTERS, ["power_watts"])


def test_a_gpu_that_was_just_heard_has_its_first_points_soon(node):
    snapshots.store(node.cluster_id, TelemetryReading(said(AT, BOARD, power_watts=1.0), frozenset({"power_watts"}), {}))

    assert history_of(node, "1h", now=NOON).trouble == SOON


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (ExportersState.NONE, "no GPU exporter is seen in the cluster."),
        (ExportersState.FORBIDDEN, "Quarterdeck may not query its exporters. Its rule is missing."),
        (ExportersState.UNSEEN, "its exporters are not queried, because the cluster does not answer."),
        (ExportersState.ASKED, "answered yet. The first points appear within two minutes of the first answer."),
        (ExportersState.TOO_MANY, "so it stores no values. Add a Prometheus for plots."),
    ],
)  # fmt: skip
def test_why_no_minutes_are_kept_is_said(state, words):
    node = make.a_node(make.a_cluster(), "gpu-1", gpus=1)
    make.an_exporter_round(node.cluster, state=state, read_at=None, exporters=412, message="Its rule is missing.")

    told = history_of(node, "1h", now=NOON)

    assert told.trouble.startswith("The cluster has no Prometheus")
    assert told.trouble.endswith(words)
    assert told.plots == []


def test_a_cluster_with_too_many_exporters_has_no_minutes_of_before_either(node):
    hear(node, minute=0, power_watts=100.0)
    node.cluster.exporter_round.delete()
    make.an_exporter_round(node.cluster, state=ExportersState.TOO_MANY, exporters=412)

    told = history_of(node, "1h", now=NOON)

    assert told.trouble == (
        "The cluster has no Prometheus. The cluster has 412 exporters, and Quarterdeck queries at most 200, so "
        "it stores no values. Add a Prometheus for plots."
    )


@pytest.mark.parametrize(
    ("hours", "words"),
    [
        (30, "Without a Prometheus, values are stored for 24 h. This time is earlier."),
        (3, "No values of this time were stored."),
    ],
)  # fmt: skip
def test_of_a_time_without_minutes_it_says_so(node, hours, words):
    hear(node, minute=0, power_watts=100.0)
    hot = make.a_finding(node.cluster, "GPU 0 of gpu-1", node=node, rule="gpu-hot", since=NOON - timedelta(hours=hours))

    assert plots_of(hot, node, now=NOON).trouble == words


def test_a_node_whose_exporter_is_silent_says_so(node):
    hear(node, minute=-120, power_watts=100.0)

    assert history_of(node, "1h", now=NOON).trouble == "The exporter of this node did not answer in this time."


def test_minutes_cost_one_query_more(node):
    hear(node, minute=0, power_watts=100.0)

    with CaptureQueriesContext(connection) as asked:
        history_of(node, "24h", now=NOON)

    assert len(asked) == 5


@pytest.mark.usefixtures("now")
def test_rest_says_the_same_and_leads_who_sees_the_cluster_to_adding_a_prometheus(node):
    hear(node, minute=0, power_watts=100.0)
    pool = make.a_pool(node.cluster)
    node.pools.add(pool)
    viewer, of_pool = make.a_user("ann", role="viewer"), make.a_user("pat", role="viewer", on=pool)

    whole, part = (
        calling(user).get(f"/api/v1/nodes/{node.pk}/telemetry/history?window=1h").json() for user in (viewer, of_pool)
    )

    assert (whole["drawn_from"], whole["trouble"]) == ("exporters", "")
    assert whole["plots"][0]["lines"][0]["values"][-1] == 100
    assert whole["add_source_href"] == f"/clusters/{node.cluster_id}#cluster-telemetry"
    assert (part["plots"], part["add_source_href"]) == (whole["plots"], "")
