"""The telemetry of a node's GPUs over the last hours, as lines and marks, for pages and REST.

It comes from the cluster's Prometheus, or without one from the stored minutes of its exporters (`minutes.py`). A user
waits for the Prometheus, so time, size and parallel queries are bounded. An answer is shared for a quarter of a minute.
"""

import math
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from itertools import pairwise

from fleet.models import ExportersState, Gpu, Node
from fleet.queries import timeline
from health.models import TelemetrySource
from health.sources import minutes
from health.sources.addresses import address_of
from health.sources.minutes import why_no_line, why_not_kept
from health.sources.node_telemetry import DeviceTelemetry, NodeTelemetry, instant, of_gpu, telemetry_of
from health.sources.secrets import NoSecret
from health.telemetry import promql
from health.telemetry.base import STALE_AFTER_S
from health.telemetry.metrics import METRICS, SERIES
from health.telemetry.minutes import NUMBERS_PER_UNIT
from health.telemetry.prometheus.answers import Unusable
from health.telemetry.prometheus.client import Bounds, Client
from health.telemetry.prometheus.ranges import LabelledDevice, PlotSpan, Steps, lines_in

WINDOWS = {"1h": 3600, "6h": 6 * 3600, "24h": 24 * 3600}
LINES_AT_MOST = 16  # a plot
DEVICES_AT_MOST = 64  # boards whose series are asked for
MARKS_AT_MOST = 100
KEPT_S = 15.0
MOST_KEPT = 64
TURN_S = 1.0  # somebody waits for a turn
AT_ONCE = 4  # of a process: more people than that do not hold all of its threads
BOUNDS = Bounds(connect_s=1.0, read_s=2.0, answer_s=3.0, answer_bytes=24 << 20)
MARKED = ("version", "boot", "ready", "condition", "cordon", "upgrade")  # kinds of a node's events
XID = "xid"
TOO_MANY = "Too many histories are being loaded at once. Try again in some seconds."
# Metrics that are plotted, one plot each. Utilisation comes from one of two metrics, by device.
PLOTTED = (
    "gpu_utilisation_ratio", "tensor_active_ratio", "memory_used_mib", "memory_active_ratio", "memory_busy_ratio",
    "temperature_celsius", "memory_temperature_celsius", "power_watts", "power_limit_watts", "sm_clock_mhz",
    "memory_clock_mhz", "throttled_thermal", "throttled_power", "throttled_board", "throttled_reliability",
    "clock_events", "dcgm_health", "ecc_corrected", "ecc_uncorrected", "rows_remapped_corrected",
    "rows_remapped_uncorrected", "row_remap_pending", "row_remap_failed", "pcie_transmitted", "pcie_received",
    "pcie_replays", "nvlink_mib_per_s", "nvlink_flit_errors", "nvlink_data_errors", "nvlink_replays",
    "nvlink_recoveries",
)  # fmt: skip
# All other metrics are the GPU's, from any of its slices.
OF_SLICES = frozenset({"gpu_utilisation_ratio", "tensor_active_ratio", "memory_used_mib", "memory_active_ratio"})
INSTEAD = {"gpu_utilisation_ratio": "engine_active_ratio"}
# Metrics whose unit differs by exporter version (`metrics.DCGM`): the plot shows only growth.
GROWING = frozenset({"throttled_thermal", "throttled_power", "throttled_board", "throttled_reliability"})
YES = "1 = yes"
# Unit of a line whose metric has none.
MEANING = {
    **dict.fromkeys((*sorted(GROWING), "row_remap_pending", "row_remap_failed"), YES),
    "dcgm_health": "10 = warning, 20 = failure",
}
PlotLines = Mapping[tuple[str, LabelledDevice], Sequence[float]]


class PlotSource(StrEnum):
    PROMETHEUS = "prometheus"
    EXPORTERS = "exporters"  # asked one by one: at one minute, the last 24 h


@dataclass(frozen=True)
class PlotLine:
    name: str
    device: DeviceTelemetry  # device of the series; for a metric of the whole GPU, its first reporting slice
    metric: str  # its key
    values: list[float | None]  # a step each; None: no sample
    is_subject: bool = False  # subject of the plots; the others are shown beside it


@dataclass(frozen=True)
class PlotLimit:
    """The value from which a rule reports a fault, in the plot's unit."""

    severity: str
    value: float


@dataclass(frozen=True)
class Plot:
    key: str
    title: str
    unit: str
    lines: list[PlotLine]
    left_out: int  # devices that are not drawn
    limits: Sequence[PlotLimit] = ()


@dataclass(frozen=True)
class PlotMark:
    at: datetime
    kind: str  # xid, finding, plan, or the kind of an event of the node
    sentence: str
    href: str = ""  # page of the object that caused it
    xid: int = 0  # of kind xid


@dataclass(frozen=True)
class TelemetryHistory:
    window: str
    asked: Steps
    drawn_from: PlotSource
    why_none: str = ""  # why there are no lines; blank: there are, or nothing is exported
    source_message: str = ""  # contains addresses and the place of the secret: only for people who see the source
    plots: list[Plot] = field(default_factory=list)  # plots with at least one line
    not_drawn: list[str] = field(default_factory=list)  # titles of exported metrics without a line
    not_exported: list[str] = field(default_factory=list)  # titles of metrics without any series
    not_kept: list[str] = field(
        default_factory=list
    )  # titles of those that are exported, and kept by a Prometheus alone
    silent_since: datetime | None = None  # since when the source is silent; None: it is not
    marks: list[PlotMark] = field(default_factory=list)  # oldest first
    marks_left_out: int = 0

    @property
    def times(self) -> list[float]:
        return self.asked.times

    @property
    def trouble(self) -> str:
        """Returns why there are no lines; empty if there are some, or nothing is exported."""
        return f"{self.why_none} {self.source_message}".rstrip()

    def without_words(self) -> "TelemetryHistory":
        """Returns a copy for users who may not see the source's messages."""
        return (
            replace(self, source_message="Only people with access to the whole cluster see the reason.")
            if self.source_message
            else self
        )


@dataclass(frozen=True)
class _Answer:
    lines: PlotLines = field(default_factory=dict)
    why_none: str = ""
    source_message: str = ""


@dataclass(frozen=True)
class _Kept:
    until: float
    answer: _Answer


_kept: dict[tuple[object, ...], _Kept] = {}
_asked: dict[tuple[object, ...], threading.Event] = {}  # queries that are being answered
_lock = threading.Lock()
_turns = threading.BoundedSemaphore(AT_ONCE)


def history_of(node: Node, window: str, *, gpu: Gpu | None = None, since: float = 0, now: datetime) -> TelemetryHistory:
    """Returns the history. `window` is a key of WINDOWS; `gpu` restricts it to one GPU of the node.

    `since` leaves out earlier instants, in seconds since the epoch. Four queries and at most one Prometheus query, or
    five queries.
    """
    return drawn_of(node, window, PlotSpan(WINDOWS[window], now.timestamp(), since), gpu=gpu, now=now)


def drawn_of(
    node: Node,
    window: str,
    span: PlotSpan,
    *,
    metrics: Collection[str] = PLOTTED,
    gpu: Gpu | None = None,
    is_subject: Callable[[DeviceTelemetry], bool] = lambda _device: False,
    now: datetime,
) -> TelemetryHistory:
    """Returns a plot for each of these metrics. The subject comes first, and is never left out."""
    known = telemetry_of(node, now=now)
    source = PlotSource.PROMETHEUS if known.has_prometheus else PlotSource.EXPORTERS
    asked = span.steps() if source is PlotSource.PROMETHEUS else span.minutes()
    devices = [device for device in known.devices if device.is_exported]
    if gpu is not None:
        devices = of_gpu(devices, gpu)
    whose = "a GPU of this node" if gpu is None else "this GPU"
    why_none = known.why_none_of(gpu) if gpu is not None else ""
    answer = _answer(node, known, devices, asked, metrics, whose=whose, why_none=why_none, now=now)
    lines = answer.lines
    marks = sorted([*_events(node, asked), *_xid_marks(lines, devices, asked)], key=lambda mark: mark.at)
    subjects = {(device.uuid, device.gi_id) for device in devices if is_subject(device)}
    plots = [_plot(key, lines, devices, subjects) for key in metrics]
    empty = [] if answer.why_none else [plot for plot in plots if not plot.lines]
    has = known.standing.exported
    lacked = {plot.key for plot in empty if not has & {plot.key, INSTEAD.get(plot.key, plot.key)}}
    unkept = {
        plot.key for plot in empty if source is PlotSource.EXPORTERS and plot.key not in NUMBERS_PER_UNIT
    } - lacked
    return TelemetryHistory(
        window,
        asked,
        source,
        answer.why_none,
        answer.source_message,
        plots=[plot for plot in plots if plot.lines],
        not_drawn=[plot.title for plot in empty if plot.key not in lacked | unkept],
        not_exported=[plot.title for plot in empty if plot.key in lacked],
        not_kept=[plot.title for plot in empty if plot.key in unkept],
        silent_since=instant(known.standing.silent_since),
        marks=marks[-MARKS_AT_MOST:],
        marks_left_out=max(0, len(marks) - MARKS_AT_MOST),
    )


def _answer(
    node: Node,
    known: NodeTelemetry,
    devices: Sequence[DeviceTelemetry],
    asked: Steps,
    metrics: Collection[str],
    *,
    whose: str,
    why_none: str,
    now: datetime,
) -> _Answer:
    """Returns the answer. Refusals are cached like answers, so that a failing source is not queried all the time."""
    source = known.source
    if source is None or not known.has_prometheus:
        return _answer_from_minutes(node, known, devices, asked, metrics, whose=whose, why_none=why_none, now=now)
    if not devices:
        never = f"The cluster's Prometheus has no series of {whose}."
        if known.standing.is_silent:
            never = f"The cluster's Prometheus is silent, and no earlier values of {whose} are stored."
        return _Answer(why_none=known.trouble or why_none or never)
    boards = frozenset(device.uuid for device in devices)
    key = (node.pk, boards, source.pk, source.changed_at, source.clock_offset_s, asked, frozenset(metrics))
    own = threading.Event()
    with _lock:
        kept = _kept.get(key)
        if kept is not None and kept.until > time.monotonic():
            return kept.answer
        if (others := _asked.get(key)) is None:
            _asked[key] = own
    if others is not None:  # somebody asks the same: a push wakes everybody who looks at a plan
        others.wait(TURN_S + BOUNDS.connect_s + BOUNDS.answer_s)
        with _lock:
            kept = _kept.get(key)
        return kept.answer if kept is not None else _Answer(why_none=TOO_MANY)
    try:
        return _ask_in_turn(source, devices, asked, metrics, key)
    finally:
        with _lock:
            del _asked[key]
        own.set()


def _ask_in_turn(
    source: TelemetrySource,
    devices: Sequence[DeviceTelemetry],
    asked: Steps,
    metrics: Collection[str],
    key: tuple[object, ...],
) -> _Answer:
    """Returns the answer of the Prometheus, and caches it under the key."""
    if not _turns.acquire(timeout=TURN_S):
        return _Answer(why_none=TOO_MANY)
    try:
        answer = _Answer(_query_lines(source, devices, asked, metrics))
    except Unusable as error:
        answer = _Answer(why_none="The cluster's Prometheus returns no history.", source_message=str(error))
    except NoSecret as error:
        answer = _Answer(why_none="The web process cannot query the cluster's Prometheus.", source_message=str(error))
    finally:
        _turns.release()
    _cache_answer(key, answer)
    return answer


def _answer_from_minutes(
    node: Node,
    known: NodeTelemetry,
    devices: Sequence[DeviceTelemetry],
    asked: Steps,
    metrics: Collection[str],
    *,
    whose: str,
    why_none: str,
    now: datetime,
) -> _Answer:
    """Returns the answer from stored minutes of exporters, with one query."""
    if refused := why_not_kept(known):
        forbidden = known.exporters if known.exporters and known.exporters.state == ExportersState.FORBIDDEN else None
        return _Answer(why_none=refused, source_message=forbidden.message if forbidden else "")
    if known.trouble or (why_none and not devices):
        return _Answer(why_none=known.trouble or why_none)
    drawn = (*metrics, *(INSTEAD[key] for key in metrics if key in INSTEAD), XID)
    lines = minutes.minutes_of(
        node.cluster_id,
        node.name,
        [(device.uuid, device.gi_id) for device in devices],
        [key for key in drawn if key in NUMBERS_PER_UNIT],
        asked,
    )
    if any(map(_line_or_none, lines.values())):
        return _Answer(lines)
    return _Answer(why_none=why_no_line(devices, asked, whose=whose, now=now))


def _cache_answer(key: tuple[object, ...], answer: _Answer) -> None:
    """Caches an answer.

    Expired ones are removed first: their keys contain instants, so they are never requested again.
    """
    now = time.monotonic()
    with _lock:
        for old in [old for old, kept in _kept.items() if kept.until <= now]:
            del _kept[old]
        while len(_kept) >= MOST_KEPT:
            _kept.pop(next(iter(_kept)))
        _kept[key] = _Kept(now + KEPT_S, answer)


def _query_lines(
    source: TelemetrySource, devices: Sequence[DeviceTelemetry], asked: Steps, metrics: Collection[str]
) -> PlotLines:
    """Returns lines by our clock. The source is queried for the same instants by its own clock.

    :raises Unusable: when the source gives no answer
    :raises NoSecret: when its password or token is missing
    """
    its = Steps(asked.first - source.clock_offset_s, asked.step_s, asked.number)
    wanted = {*metrics, *(INSTEAD[key] for key in metrics if key in INSTEAD), XID}
    rows = [row for name in sorted(SERIES) for row in SERIES[name] if row.metric in wanted]
    uuids = list(dict.fromkeys(device.uuid for device in devices if promql.is_plain(device.uuid)))[:DEVICES_AT_MOST]
    if not uuids:
        raise Unusable("None of the node's GPUs has a known UUID.")
    expression = promql.history(
        rows, uuids, promql.Matchers(source.matchers), within_s=max(STALE_AFTER_S, asked.step_s)
    )
    form = {
        "query": expression, "start": f"{its.first:.0f}", "end": f"{its.last:.0f}", "step": f"{its.step_s:.0f}",
        "timeout": f"{BOUNDS.answer_s:.0f}s",
    }  # fmt: skip
    with Client(address_of(source), BOUNDS) as client:
        return lines_in(client.ask("/api/v1/query_range", form), its)


def _plot(key: str, lines: PlotLines, devices: Sequence[DeviceTelemetry], subjects: Collection[LabelledDevice]) -> Plot:
    """Returns a plot.

    A board's value is one line, of a subject's slice if possible, else of the first slice that has it.
    """
    found: list[PlotLine] = []
    boards: set[str] = set()
    of_subjects = {uuid for uuid, _ in subjects}
    for device in devices:
        metric, line = _line_of_device(key, lines, device)
        if line is None or (key not in OF_SLICES and device.uuid in boards):
            continue
        boards.add(device.uuid)
        name, is_subject = device.board, device.uuid in of_subjects
        if key in OF_SLICES:
            name, is_subject = device.name, (device.uuid, device.gi_id) in subjects
        values = [None if math.isnan(value) else value for value in line]
        if key in GROWING:
            values = _growth_steps(values)
        found.append(PlotLine(name, device, metric, values, is_subject=is_subject))
    found.sort(key=lambda each: not each.is_subject)
    drawn = METRICS[key]
    unit = MEANING.get(key, drawn.unit)
    return Plot(key, drawn.title, unit, found[:LINES_AT_MOST], max(0, len(found) - LINES_AT_MOST))


def _growth_steps(values: Sequence[float | None]) -> list[float | None]:
    """Returns 1 where the value is more than a step before and 0 where it is not; None if unknown or restarted."""
    pairs = pairwise([None, *values])
    return [None if was is None or now is None or now < was else float(now > was) for was, now in pairs]


def _line_of_device(key: str, lines: PlotLines, device: DeviceTelemetry) -> tuple[str, Sequence[float] | None]:
    """Returns the line of a device. Under MIG there is no usual utilisation, whatever is exported."""
    place = device.uuid, device.gi_id
    usual = None if key in INSTEAD and device.is_mig else lines.get((key, place))
    if usual is None and key in INSTEAD:
        return INSTEAD[key], _line_or_none(lines.get((INSTEAD[key], place)))
    return key, _line_or_none(usual)


def _line_or_none(line: Sequence[float] | None) -> Sequence[float] | None:
    """Returns the line, or None if it has no value."""
    return line if line is not None and any(value == value for value in line) else None


def _xid_marks(lines: PlotLines, devices: Sequence[DeviceTelemetry], asked: Steps) -> list[PlotMark]:
    """Returns marks where a device's last Xid changed.

    The gauge is latched, so a second Xid of the same number is hidden.
    """
    found = []
    for device in devices:
        before = math.nan
        for place, xid in enumerate(lines.get((XID, (device.uuid, device.gi_id)), ())):
            if xid != xid:
                continue
            if xid and before == before and xid != before:
                at = datetime.fromtimestamp(asked.first + place * asked.step_s, UTC)
                found.append(PlotMark(at, XID, f"Xid {xid:.0f} on {device.name}", xid=int(xid)))
            before = xid
    return found


def _events(node: Node, asked: Steps) -> list[PlotMark]:
    since = datetime.fromtimestamp(asked.first, UTC)
    until = datetime.fromtimestamp(asked.last + asked.step_s, UTC)
    rows = (
        timeline(node).filter(at__gte=since, at__lt=until, kind__in=MARKED).order_by("-at", "-pk")[: MARKS_AT_MOST + 1]
    )
    return [PlotMark(row.at, row.kind, row.sentence) for row in reversed(rows)]
