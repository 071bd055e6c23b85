import json
import threading
from array import array
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from urllib.parse import parse_qs

import pytest

from health.sources import history, snapshots
from health.sources.history import LINES_AT_MOST, PLOTTED, history_of
from health.telemetry import promql
from health.telemetry.base import TelemetryReading
from health.telemetry.metrics import METRICS
from health.telemetry.prometheus.ranges import PlotSpan
from health.telemetry.snapshot import GpuDevice, MetricColumn, TelemetrySnapshot
from tests import make
from tests.health.telemetry.prometheus.a_server import a_closed_port, a_server, saying
from tests.make import NOON
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.django_db
AT = NOON.timestamp()
BOARD = GpuDevice("gpu-1", 0, "GPU-a")


@pytest.fixture(autouse=True)
def _here(redis, settings):
    settings.TELEMETRY_LOOPBACK = True
    history._kept.clear()


@pytest.fixture
def node():
    row = make.a_node(make.a_cluster(), "gpu-1", gpus=1)
    snapshots.forget(row.cluster_id)
    return row


def keep(cluster, *devices: GpuDevice) -> None:
    snapshot = TelemetrySnapshot(AT, devices or (BOARD,))
    snapshot.columns["temperature_celsius"] = MetricColumn.empty(len(snapshot.devices))
    snapshot.columns["temperature_celsius"].values[0] = 61.0
    snapshot.columns["temperature_celsius"].times = array("d", [AT] * len(snapshot.devices))
    snapshots.store(cluster.pk, TelemetryReading(snapshot, frozenset({"temperature_celsius"}), {}))


def series(name: str, *values: tuple[int, float], uuid: str = "GPU-a", **labels: str) -> dict:
    """Each value so many seconds before noon."""
    return {"metric": {"__name__": name, "UUID": uuid, **labels},
            "values": [[AT - age, str(value)] for age, value in values]}  # fmt: skip


def matrix(*rows: dict):
    return saying(json.dumps({"status": "success", "data": {"resultType": "matrix", "result": rows}}).encode())


def told(node, *rows: dict, window: str = "1h"):
    with a_server(matrix(*rows)) as (url, _):
        make.a_source(node.cluster, url=url)
        return history_of(node, window, now=NOON)


def test_many_who_ask_the_same_at_once_cost_one_query(node, monkeypatch):
    make.a_source(node.cluster, url="http://prometheus.example")
    keep(node.cluster)
    known, asked, line = history.telemetry_of(node, now=NOON), list[int](), {("power_watts", ("GPU-a", "")): [61.0]}
    answering = threading.Event()

    def answered(*_given):
        asked.append(1)
        answering.wait(PATIENCE_S)
        return line

    def asks(_number):
        steps = PlotSpan(3600, AT).steps()
        return history._answer(node, known, known.devices, steps, PLOTTED, whose="it", why_none="", now=NOON).lines

    monkeypatch.setattr(history, "_query_lines", answered)
    with ThreadPoolExecutor(8) as pool:
        answers = [pool.submit(asks, number) for number in range(8)]
        answering.set()
        assert [answer.result() for answer in answers] == [line] * 8
    assert len(asked) == 1
    assert not history._asked


def test_draws_what_has_samples_and_names_what_has_none(node):
    keep(node.cluster)

    known = told(node, series("DCGM_FI_DEV_GPU_TEMP", (30, 61), (0, 0)))

    (plot,) = known.plots
    assert (plot.title, plot.unit, plot.lines[0].device.name) == ("Temperature", "°C", "GPU 0")
    assert plot.lines[0].values[-3:] == [61.0, None, 0.0]
    assert len(plot.lines[0].values) == len(known.times)
    assert known.not_drawn == []
    assert "Power" in known.not_exported


@pytest.mark.parametrize(("age_s", "instants"), [(3600, 241), (60, 5), (50, 4), (0, 1), (-900, 1)])
def test_of_who_has_the_earlier_instants_only_the_later_are_asked_for(node, age_s, instants):
    keep(node.cluster)

    with a_server(matrix(series("DCGM_FI_DEV_GPU_TEMP", (3600, 60), (60, 61), (0, 62)))) as (url, server):
        make.a_source(node.cluster, url=url)
        known = history_of(node, "1h", since=AT - age_s, now=NOON)

    asked = parse_qs(*server.queries)
    assert known.times == [AT - 15 * back for back in reversed(range(instants))]
    assert known.plots[0].lines[0].values[-1] == 62
    assert asked["start"] == [f"{known.times[0]:.0f}"]


@pytest.mark.parametrize("ahead_s", [-7200, -40, 40, 7200])
def test_a_clock_that_is_not_ours_moves_no_sample(node, ahead_s):
    keep(node.cluster)
    said = series("DCGM_FI_DEV_GPU_TEMP", (3600 - ahead_s, 60), (-ahead_s, 62))

    with a_server(matrix(said)) as (url, server):
        make.a_source(node.cluster, url=url, clock_offset_s=-ahead_s)
        known = history_of(node, "1h", now=NOON)

    asked = parse_qs(*server.queries)
    assert asked["end"] == [f"{AT + ahead_s:.0f}"]
    assert (known.times[0], known.times[-1]) == (AT - 3600, AT)
    assert (known.plots[0].lines[0].values[0], known.plots[0].lines[0].values[-1]) == (60, 62)


def test_draws_what_tensor_cores_memory_links_and_throttles_do(node):
    keep(node.cluster)

    known = told(
        node, series("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", (0, 0.4)), series("DCGM_FI_PROF_DRAM_ACTIVE", (0, 0)),
        series("DCGM_FI_PROF_PCIE_TX_BYTES", (0, 2e9)), series("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", (0, 100)),
        series("DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", (0, 3)),
    )  # fmt: skip

    assert {plot.key: plot.lines[0].values[-1] for plot in known.plots} == {
        "tensor_active_ratio": 0.4,
        "memory_active_ratio": 0.0,
        "pcie_transmitted": 2e9,
        "nvlink_mib_per_s": 100.0,
        "nvlink_replays": 3.0,
    }
    assert "Memory bandwidth used" not in known.not_exported
    assert {"Throttled by heat", "PCIe received", "NVLink CRC data errors"} <= set(known.not_exported)


def test_of_what_counts_in_an_unknown_unit_it_is_drawn_that_it_grew(node):
    keep(node.cluster)

    known = told(node, series("DCGM_FI_DEV_THERMAL_VIOLATION", (75, 10), (60, 10), (45, 7e9), (30, 2), (0, 2)))

    (plot,) = known.plots
    assert (plot.key, plot.unit) == ("throttled_thermal", "1 = yes")
    assert plot.lines[0].values[-6:] == [None, 0.0, 1.0, None, None, None]


def test_draws_what_its_memory_and_the_health_check_say(node):
    keep(node.cluster)

    known = told(
        node, series("DCGM_FI_DEV_MEM_COPY_UTIL", (0, 30)), series("DCGM_FI_DEV_MEMORY_TEMP", (0, 88)),
        series("DCGM_FI_DEV_POWER_MGMT_LIMIT", (0, 700)), series("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", (0, 2)),
        series("DCGM_FI_DEV_ROW_REMAP_PENDING", (15, 0), (0, 1)),
        *[series("DCGM_EXP_GPU_HEALTH_STATUS", (0, it), health_watch=watch) for watch, it in (("MEM", 20), ("SM", 0))],
    )  # fmt: skip

    assert {plot.key: (plot.unit, plot.lines[0].values[-1]) for plot in known.plots} == {
        "memory_busy_ratio": ("", 0.3),
        "memory_temperature_celsius": ("°C", 88.0),
        "power_limit_watts": ("W", 700.0),
        "rows_remapped_corrected": ("", 2.0),
        "row_remap_pending": ("1 = yes", 1.0),
        "dcgm_health": ("10 = warning, 20 = failure", 20.0),
    }
    assert {"Rows remapped for uncorrected errors", "Row remapping failed"} <= set(known.not_exported)


def test_what_each_slice_says_of_the_memory_of_its_board_is_drawn_once(node):
    keep(node.cluster, *[GpuDevice("gpu-1", 0, "GPU-a", gi_id) for gi_id in ("7", "8")])
    names = ("DCGM_FI_DEV_MEMORY_TEMP", "DCGM_FI_DEV_ROW_REMAP_FAILURE", "DCGM_FI_DEV_MEM_COPY_UTIL")

    known = told(node, *[series(name, (0, 1), GPU_I_ID=gi_id) for name in names for gi_id in ("7", "8")])

    assert {plot.key: [line.name for line in plot.lines] for plot in known.plots} == {
        "memory_busy_ratio": ["GPU 0"],
        "memory_temperature_celsius": ["GPU 0"],
        "row_remap_failed": ["GPU 0"],
    }


def test_every_metric_of_gpus_has_a_plot_or_a_reason_for_none():
    no_line = {
        "engine_active_ratio", "memory_free_mib", "energy_joules", "xid", "xids_counted", "clock_reasons",
        "called_healthy", "recovery_action", "fabric_manager_status", "fabric_health",
    }  # fmt: skip

    assert set(PLOTTED) == set(METRICS) - no_line


def test_each_slice_has_its_own_tensor_cores_and_memory_bandwidth(node):
    keep(node.cluster, *[GpuDevice("gpu-1", 0, "GPU-a", gi_id) for gi_id in ("7", "8")])
    rows = [
        series(name, (0, 0.5), GPU_I_ID=gi_id)
        for name in ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "DCGM_FI_PROF_DRAM_ACTIVE")
        for gi_id in ("7", "8")
    ]

    known = told(node, *rows)

    assert [[line.device.gi_id for line in plot.lines] for plot in known.plots] == [["7", "8"], ["7", "8"]]


def test_under_mig_the_engines_are_drawn_and_never_the_usual_utilisation(node):
    slices = [GpuDevice("gpu-1", 0, "GPU-a", gi_id) for gi_id in ("7", "8")]
    keep(node.cluster, BOARD, *slices)

    known = told(
        node, series("DCGM_FI_DEV_GPU_UTIL", (0, 0)), series("DCGM_FI_DEV_GPU_UTIL", (0, 0), GPU_I_ID="7"),
        series("DCGM_FI_PROF_GR_ENGINE_ACTIVE", (0, 0.5), GPU_I_ID="8"),
    )  # fmt: skip

    (plot,) = known.plots
    assert [(line.device.gi_id, line.metric) for line in plot.lines] == [("8", "engine_active_ratio")]


def test_what_each_slice_says_of_its_board_is_drawn_once(node):
    keep(node.cluster, *[GpuDevice("gpu-1", 0, "GPU-a", gi_id) for gi_id in ("7", "8")])

    known = told(node, *[series("DCGM_FI_DEV_GPU_TEMP", (0, 61), GPU_I_ID=gi_id) for gi_id in ("7", "8")])

    assert [line.name for line in known.plots[0].lines] == ["GPU 0"]


def test_marks_where_an_xid_became_another_and_what_the_timeline_has(node):
    keep(node.cluster)
    make.a_node_event(node, "The driver is 580.95.05.", at=NOON - timedelta(minutes=10))
    make.a_node_event(node, "Long ago.", at=NOON - timedelta(hours=2))

    known = told(node, series("DCGM_FI_DEV_XID_ERRORS", (1800, 0), (900, 79), (600, 79), (300, 0), (0, 31)))

    assert [(mark.kind, mark.sentence) for mark in known.marks] == [
        ("xid", "Xid 79 on GPU 0"),
        ("version", "The driver is 580.95.05."),
        ("xid", "Xid 31 on GPU 0"),
    ]


def test_what_was_there_when_the_time_begins_is_no_mark(node):
    keep(node.cluster)

    assert told(node, series("DCGM_FI_DEV_XID_ERRORS", (1800, 79), (0, 79))).marks == []


def test_draws_no_more_lines_than_can_be_told_apart(node):
    devices = [GpuDevice("gpu-1", number, f"GPU-{number:02}") for number in range(20)]
    keep(node.cluster, *devices)

    known = told(node, *[series("DCGM_FI_DEV_GPU_TEMP", (0, 61), uuid=device.uuid) for device in devices])

    assert (len(known.plots[0].lines), known.plots[0].left_out) == (LINES_AT_MOST, 4)


def test_of_a_source_that_is_silent_nobody_says_what_it_never_had(node):
    """What it said before may have been lost with Redis, or be over a day old."""
    make.a_source(node.cluster, state="silent", state_since=NOON)

    said = history_of(node, "1h", now=NOON).trouble

    assert said == "The cluster's Prometheus is silent, and no earlier values of a GPU of this node are stored."


def test_asks_once_for_all_who_look_and_only_for_this_nodes_devices(node):
    keep(node.cluster, BOARD, GpuDevice("gpu-1", 1, 'GPU-b"} or up{x="'))
    with a_server(matrix()) as (url, server):
        make.a_source(node.cluster, url=url, matchers='cluster="eu"')
        for _ in range(3):
            history_of(node, "6h", now=NOON)

        (body,) = server.queries

    asked = parse_qs(body)
    assert '{__name__=~"' in asked["query"][0]
    assert ',UUID=~"GPU-a",cluster="eu"}[90s]' in asked["query"][0]
    assert "up{" not in asked["query"][0]
    assert 'clock_type=~"GPU_CLOCK_TYPE_SYSTEM|system"' in asked["query"][0]
    assert (int(asked["end"][0]) - int(asked["start"][0])) / int(asked["step"][0]) < 300


def test_what_is_over_makes_room(node, monkeypatch):
    keep(node.cluster)
    with a_server(matrix()) as (url, server):
        make.a_source(node.cluster, url=url)
        monkeypatch.setattr(history, "KEPT_S", 0.0)
        for age in range(3):
            history_of(node, "1h", now=NOON + timedelta(seconds=15 * age))

    assert len(server.queries) == 3
    assert len(history._kept) == 1


def test_an_answer_that_is_bad_is_a_sentence_and_is_not_asked_for_again_at_once(node):
    keep(node.cluster)
    with a_server(saying(b"<html>sign in</html>")) as (url, server):
        make.a_source(node.cluster, url=url)
        known = [history_of(node, "1h", now=NOON) for _ in range(2)]

        assert len(server.queries) == 1
    assert "returns no history. The server returns a web page" in known[1].trouble
    assert known[1].plots == []


def test_each_reason_for_no_plots_is_said(node, settings):
    assert "has no Prometheus" in history_of(node, "1h", now=NOON).trouble
    source = make.a_source(node.cluster, url=f"http://127.0.0.1:{a_closed_port()}")
    assert "The cluster's Prometheus has no series of" in history_of(node, "1h", now=NOON).trouble
    keep(node.cluster)
    assert "cannot be reached" in history_of(node, "1h", now=NOON).trouble
    source.secret_from = "env:QUARTERDECK_SOURCE_NONE"
    source.changed_at = NOON + timedelta(seconds=1)
    source.save()
    assert "The web process cannot query the cluster's Prometheus" in history_of(node, "1h", now=NOON).trouble
    source.state = "off"
    source.save()
    assert "disabled" in history_of(node, "1h", now=NOON).trouble


def test_many_who_look_at_once_do_not_hold_every_thread(node, monkeypatch):
    keep(node.cluster)
    make.a_source(node.cluster, url=f"http://127.0.0.1:{a_closed_port()}")
    monkeypatch.setattr(history, "TURN_S", 0.01)
    turns = [history._turns.acquire(blocking=False) for _ in range(history.AT_ONCE)]

    try:
        assert "Too many histories are being loaded at once" in history_of(node, "1h", now=NOON).trouble
    finally:
        for _ in turns:
            history._turns.release()


def test_only_plain_names_of_devices_are_asked_for():
    assert promql.is_plain("GPU-5b0e7a0c-1f1e-4c7b-9a59-0e3f5d2c1b0a")
    assert not promql.is_plain('GPU"')
    assert not promql.is_plain("a|b")


def test_of_one_gpu_only_its_own_lines_and_xids_are_drawn(node):
    keep(node.cluster, BOARD, GpuDevice("gpu-1", 1, "GPU-b"))
    rows = [series("DCGM_FI_DEV_GPU_TEMP", (0, 61 + place), uuid=uuid) for place, uuid in enumerate(("GPU-a", "GPU-b"))]
    rows.append(series("DCGM_FI_DEV_XID_ERRORS", (600, 0), (0, 31), uuid="GPU-b"))
    make.a_node_event(node, "The driver is 580.95.05.", at=NOON - timedelta(minutes=10))

    with a_server(matrix(*rows)) as (url, _):
        make.a_source(node.cluster, url=url)
        both = history_of(node, "1h", now=NOON)
        one = history_of(node, "1h", gpu=node.gpus.get(index=0), now=NOON)

    assert [line.name for line in both.plots[0].lines] == ["GPU 0", "GPU 1"]
    assert [line.name for line in one.plots[0].lines] == ["GPU 0"]
    assert [mark.kind for mark in both.marks] == ["version", "xid"]
    assert [mark.kind for mark in one.marks] == ["version"]


def test_of_a_gpu_that_its_source_never_named_it_says_so(node):
    keep(node.cluster, GpuDevice("gpu-1", 1, "GPU-b"))
    make.a_source(node.cluster, url="http://127.0.0.1:9")

    found = history_of(node, "1h", gpu=node.gpus.get(index=0), now=NOON)

    assert found.trouble == "The cluster's Prometheus has no series of this GPU."
