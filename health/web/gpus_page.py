"""The GPU table: every GPU that a user sees, with its findings, allocation and telemetry."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from django.http import HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST

from edges.digits import whole_number
from edges.parts import part_response
from edges.requests import PersonRequest
from fleet.messages.numbers import numbers_of
from fleet.models import Node, Observer
from fleet.queries import pools_named
from fleet.states.node import TITLES, state_key
from health.gpus.columns import COLUMNS, ORDER_TITLES, USUAL, GpuColumn
from health.gpus.files import TooLong, csv_of, json_of
from health.gpus.gpu_filter import PARTS, READINGS, SEVERITIES, GpuFilter
from health.gpus.selection import TooWide
from health.gpus.table import GpuSeen, GpuTable, clusters_seen, table_of
from health.gpus.views import GPU_VIEWS
from health.sources.cluster_telemetry import ClusterTelemetry
from health.sources.node_telemetry import instant
from health.sources.readings import MetricReading, ReadingState
from health.telemetry.metrics import METRICS
from health.web.gpu_readings import words_of
from health.web.reading_cells import ReadingCell, cell_of, gib, reading_style
from health.web.saved_views import context_of, forget_view, save_view
from people.models import User
from people.rights import Permission, scope_of
from wording.instants import clock
from wording.numbers import count

PER_PAGE = 100
ALLOCATIONS_SHOWN = 2
SHOWN = frozenset({"temperature", "utilisation", "memory", "power", "xid"})  # columns with a cell of their own
GLYPHS: Mapping[str, str] = {"critical": "bad", "warning": "warn", "note": "part"}


@dataclass(frozen=True)
class TableHead:
    column: GpuColumn
    href: str  # that sorts by it; blank: nothing does
    sorted: str  # ascending, descending; blank: not by it


@dataclass(frozen=True)
class GpuLine:
    seen: GpuSeen
    temperature: ReadingCell
    busy: ReadingCell
    memory: ReadingCell
    power: ReadingCell
    xid: ReadingCell
    is_bad: bool  # the last Xid needs attention
    others: Sequence[tuple[GpuColumn, ReadingCell]]  # values of the other visible metrics
    untold: ReadingCell | None  # first visible metric, if it was never reported
    sampled_at: datetime | None
    is_old: bool
    glyph: str  # of its finding

    @property
    def allocations(self) -> Sequence[Any]:
        return (self.seen.allocations or ())[:ALLOCATIONS_SHOWN]

    @property
    def more_allocations(self) -> int:
        return max(0, len(self.seen.allocations or ()) - ALLOCATIONS_SHOWN)


@dataclass(frozen=True)
class Pager:
    number: int
    pages: int
    count: int

    @property
    def first(self) -> int:
        return (self.number - 1) * PER_PAGE + 1 if self.count else 0

    @property
    def last(self) -> int:
        return min(self.count, self.number * PER_PAGE)


def gpus(request: PersonRequest) -> HttpResponse:
    seq = numbers_of(Observer.batches_of(clusters_seen(request.user)))
    table = _table(request)
    context = {
        "seq": seq,
        **table,
        **_choices(request.user),
        "order_choices": _orders(table["wanted"]),
        **context_of(request, GPU_VIEWS),
    }
    return render(request, "health/gpus/page.html", context)


@part_response
def gpus_part(request: PersonRequest) -> HttpResponse:
    response = render(request, "health/gpus/_table.html", _table(request))
    if request.headers.get("HX-Trigger") == "gpu-filters":
        response["HX-Push-Url"] = f"{reverse('gpus')}?{GpuFilter.read(request.GET).query()}"
    return response


def _table(request: PersonRequest) -> dict[str, Any]:
    wanted, now = GpuFilter.read(request.GET), timezone.now()
    number = max(1, whole_number(request.GET.get("page", "")[:6]) or 1)
    told = [column for column in wanted.shown if column.metrics]
    shown: dict[str, Any] = {
        "wanted": wanted,
        "query": wanted.query(),
        "heads": [_table_head(column, wanted) for column in wanted.shown],
        "shows": {column.key for column in wanted.shown},
        "told_columns": len(told),
        "columns": [(column, column in wanted.shown) for column in COLUMNS.values()],
    }
    try:
        table = table_of(request.user, wanted, now=now, stop=number * PER_PAGE)
    except TooWide as refusal:
        return {**shown, "refusal": str(refusal), "lines": [], "page": Pager(1, 1, 0), "total": 0}
    pages = max(1, -(-len(table) // PER_PAGE))
    page = Pager(min(number, pages), pages, len(table))
    rows = table.rows((page.number - 1) * PER_PAGE, page.number * PER_PAGE)
    return {
        **shown,
        "page": page,
        "before": page.number - 1,
        "after": page.number + 1,
        "total": table.total,
        "lines": [line_of(seen, told, now=now) for seen in rows],
        "notes": [*_notes_on_missing(wanted, table), *_notes(table, clusters_seen(request.user), now=now)],
        "hints": _filter_hints(request.user, wanted, table, now=now),
    }


def _table_head(column: GpuColumn, wanted: GpuFilter) -> TableHead:
    if not column.can_order:
        return TableHead(column, "", "")
    is_sorted = wanted.order_key == column.key
    way = ("descending" if wanted.is_descending else "ascending") if is_sorted else ""
    return TableHead(column, f"?{wanted.ordered_by(column).query()}", way)


def line_of(seen: GpuSeen, told: Sequence[GpuColumn], *, now: datetime) -> GpuLine:
    """Returns a line. `told` holds the visible telemetry columns."""
    metrics = seen.metrics
    limit, total, xid = metrics["power_limit_watts"].value, seen.memory_total_mib, metrics["xid"]
    by = "" if seen.busy_key == "gpu_utilisation_ratio" else "Graphics engine active"
    of = "" if total is None else f"of {gib(total)}"
    return GpuLine(
        seen,
        temperature=_reading_cell(metrics["temperature_celsius"], "{:.0f} °C", now=now),
        busy=_reading_cell(seen.busy, "{:.0%}", title=by, now=now),
        memory=_reading_cell(metrics["memory_used_mib"], "{} GiB", read=gib, beside=of, now=now),
        power=_reading_cell(
            metrics["power_watts"], "{:.0f} W", beside="" if limit is None else f"of {limit:.0f}", now=now
        ),
        xid=_reading_cell(xid, "", now=now) if xid.value is None else _xid(seen, xid, now=now),
        is_bad=bool(xid.value),
        others=[
            (column, _other_cell(column.key, metrics[column.key], now=now))
            for column in told
            if column.key not in SHOWN
        ],
        untold=_reading_cell(metrics[told[0].metrics[0]], "", now=now) if told and not seen.is_exported else None,
        sampled_at=instant(seen.sampled_at),
        is_old=not any(reading.is_fresh for reading in metrics.values()),
        glyph=GLYPHS.get(seen.finding.severity, "part") if seen.finding else "",
    )


def _reading_cell(
    reading: MetricReading, form: str, *, read=None, beside: str = "", title: str = "", now: datetime
) -> ReadingCell:
    return cell_of(
        reading, form, read=read, beside=beside, title=" ".join(filter(None, (title, _stale_text(reading, now=now))))
    )


def _xid(seen: GpuSeen, reading: MetricReading, *, now: datetime) -> ReadingCell:
    words = "none" if not reading.value else f"{reading.value:.0f}"
    return ReadingCell(
        reading_style(reading), words, "", " ".join(filter(None, (seen.xid_words, _stale_text(reading, now=now))))
    )


def _other_cell(key: str, reading: MetricReading, *, now: datetime) -> ReadingCell:
    return cell_of(reading, "{}", read=partial(words_of, key), title=_stale_text(reading, now=now))


def _stale_text(reading: MetricReading, *, now: datetime) -> str:
    """Returns why a value is not current; empty if it is, or there is none."""
    at = instant(reading.since)
    when = f" since {clock(at, now=now)} UTC" if at else ""
    words = {ReadingState.STALE: "Stale", ReadingState.SOURCE_SILENT: "The telemetry source is silent"}
    return f"{words[reading.state]}{when}." if reading.state in words else ""


def _notes_on_missing(wanted: GpuFilter, table: GpuTable) -> Iterator[str]:
    """Yields notes about GPUs without data, so that none is taken for healthy."""
    if table.without_value:
        title, belong = METRICS[wanted.metric].title, "it belongs" if table.without_value == 1 else "they belong"
        yield f"{count(table.without_value, 'GPU')} without a value of “{title}”: it is unknown whether {belong} here."


def _notes(table: GpuTable, clusters: Mapping[int, str], *, now: datetime) -> list[str]:
    """Returns why a cluster's GPUs have no telemetry, so that an empty column is not taken for idle GPUs."""
    return [
        words for name, telemetry in table.sources(clusters) if (words := _telemetry_note(name, telemetry, now=now))
    ]


def _telemetry_note(name: str, telemetry: ClusterTelemetry, *, now: datetime) -> str:
    standing = telemetry.standing
    if telemetry.trouble:
        return f"{name}: {telemetry.trouble}"
    if not standing.has_source:
        return f"{name} has no enabled telemetry source, so the state of its GPUs is unknown."
    if standing.is_silent:
        at = instant(standing.silent_since)
        when = f" since {clock(at, now=now)} UTC" if at else ""
        return f"{name}: the telemetry source is silent{when}. Hatched values are its last values."
    return ""


def _filter_hints(user: User, wanted: GpuFilter, table: GpuTable, *, now: datetime) -> list[tuple[str, str, int]]:
    """Returns for an empty result how many GPUs would match without each part of the filter."""
    if len(table) or not wanted.active:
        return []
    found = []
    for name in wanted.active:
        looser = wanted.without(name)
        if looser.namespace:  # counting other namespaces on each request costs too much for a hint
            continue
        found.append((PARTS[name], f"?{looser.query()}", len(table_of(user, looser, now=now, stop=1))))
    return sorted((hint for hint in found if hint[2]), key=lambda hint: -hint[2])


def _orders(wanted: GpuFilter) -> list[tuple[str, str]]:
    """Returns the sort orders: the usual columns, the visible ones and the current one."""
    keys = {*USUAL, "node", wanted.order_key, *(column.key for column in wanted.shown)}
    return [(ordering, title) for ordering, title in ORDER_TITLES.items() if ordering.removeprefix("-") in keys]


def _choices(user: User) -> dict[str, Any]:
    """Returns the options of each select of the filter, from existing values."""
    nodes = Node.objects.visible_to(user).with_gpus().order_by("gpu_product")
    return {
        "cluster_choices": list(clusters_seen(user).values()),
        "pool_choices": pools_named(user),
        "product_choices": list(nodes.exclude(gpu_product="").values_list("gpu_product", flat=True).distinct()),
        "state_choices": [(state_key(state), title.lower()) for state, title in TITLES.items()],
        "severity_choices": SEVERITIES,
        "metric_choices": [(key, metric.title, metric.unit) for key, metric in METRICS.items()],
        "reading_choices": READINGS.items(),
    }


def address(query: str) -> str:
    return f"{reverse('gpus')}{f'?{query}' if query else ''}"


def csv_file(request: PersonRequest) -> HttpResponse | StreamingHttpResponse:
    return _file(request, csv_of)


def json_file(request: PersonRequest) -> HttpResponse | StreamingHttpResponse:
    return _file(request, json_of)


def _file(
    request: PersonRequest, written: Callable[[GpuTable], StreamingHttpResponse]
) -> HttpResponse | StreamingHttpResponse:
    if scope_of(request.user, Permission.SEE).nowhere:  # an empty file would read as if there were no GPU
        return _refused("You have no role yet. Ask an admin of this Quarterdeck for one.", status=403)
    try:
        return written(table_of(request.user, GpuFilter.read(request.GET), now=timezone.now()))
    except (TooWide, TooLong) as refusal:
        return _refused(str(refusal))


def _refused(sentence: str, *, status: int = 400) -> HttpResponse:
    return HttpResponse(sentence, status=status, content_type="text/plain; charset=utf-8")


@require_POST
def save(request: PersonRequest) -> HttpResponse:
    return save_view(request, GPU_VIEWS)


@require_POST
def forget(request: PersonRequest, view_id: int) -> HttpResponse:
    return forget_view(request, GPU_VIEWS, view_id)
