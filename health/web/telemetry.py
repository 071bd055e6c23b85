"""The telemetry of a cluster's source and of a node's GPUs for their pages."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from edges.parts import part_response
from edges.requests import PersonRequest
from fleet.models import ExporterRound, Gpu, Node
from fleet.queries import gpu_at
from fleet.web.node_lookup import node_for
from fleet.web.summary import cluster_for
from health.models import SourceState, TelemetrySource
from health.sources.exported_metrics import Exporting, NodesCounted, exporting_of
from health.sources.node_telemetry import DeviceTelemetry, NodeTelemetry, instant, of_gpu, source_state, telemetry_of
from health.sources.readings import ReadingState
from health.telemetry.metrics import METRICS, Metric, missing_metrics
from health.web.gpu_readings import other_readings
from health.web.reading_cells import ReadingCell, cell_of, gib, reading_style
from people.rights import Permission, scope_of, why_not


@dataclass(frozen=True)
class MetricOnPage:
    metric: Metric
    nodes: NodesCounted | None = None  # None: not counted yet

    @property
    def is_partly(self) -> bool:
        return self.nodes is not None and self.nodes.not_exported > 0


@dataclass(frozen=True)
class SourceCard:
    source: TelemetrySource | None
    state: str  # none, off, waiting, answering, late, silent
    exported: Sequence[MetricOnPage] = ()
    not_exported: Sequence[Metric] = ()  # usual ones
    to_be_switched_on: Sequence[Metric] = ()
    exporting: Exporting | None = None  # None: unknown

    @property
    def partly(self) -> int:
        """Returns how many metrics only some exporters have."""
        return sum(one.is_partly for one in self.exported)


def source_card(
    source: TelemetrySource | None,
    *,
    told: Collection[str] | None = None,
    exporting: Exporting | None = None,
    now: datetime,
) -> SourceCard:
    """Returns the card. `told` is the data of an unsaved source that is being tried.

    If `told` and `exporting` are None, the exported metrics are unknown.
    """
    exported = source.exported if source else exporting.exported if exporting else told or ()
    has = [
        MetricOnPage(metric, exporting.of_metric(key) if exporting else None)
        for key, metric in METRICS.items()
        if key in exported
    ]
    usual, others = missing_metrics(exported)
    if source is None:
        is_known = told is not None or exporting is not None
        return SourceCard(None, "none", has, usual, others, exporting) if is_known else SourceCard(None, "none")
    state = source.state_at(now)
    if source.answered_at is None:
        return SourceCard(source, state)
    return SourceCard(source, state, has, usual, others, exporting)


@part_response
def cluster_telemetry_part(request: PersonRequest, cluster_id: int) -> HttpResponse:
    """Renders the source; empty for users who see only pools, since a source covers the whole cluster."""
    row = cluster_for(request, cluster_id)
    if not scope_of(request.user, Permission.SEE).covers_cluster(row.pk):
        return HttpResponse()
    source, where = TelemetrySource.objects.filter(cluster=row).first(), f"cluster {row.name}"
    exporters, now = ExporterRound.objects.filter(cluster=row).first(), timezone.now()
    standing = source_state(source, exporters, now=now)
    exporting = exporting_of({row.pk: standing}, Node.objects.filter(cluster=row)).get(row.pk)
    shown = {
        "cluster": row,
        "card": source_card(source, exporting=exporting, now=now),
        "exporters": exporters,
        "why_not": why_not(request.user, Permission.ADMINISTER, cluster_id=row.pk, where=where),
        "why_not_ask": why_not(request.user, Permission.STOP, cluster_id=row.pk, where=where),
    }
    return render(request, "health/cluster/_telemetry.html", shown)


@dataclass(frozen=True)
class DeviceLine:
    """A board, or a slice of one. None stands for a value of the board, shown in the board's line."""

    device: DeviceTelemetry
    name: str
    temperature: ReadingCell | None
    busy: ReadingCell
    memory: ReadingCell
    power: ReadingCell | None
    xid: ReadingCell | None
    is_bad: bool  # the last Xid needs attention
    sampled_at: datetime | None  # the newest of all its samples
    is_old: bool  # none of its values is of now
    is_slice: bool = False


@part_response
def node_telemetry_part(request: PersonRequest, node_id: int) -> HttpResponse:
    """Renders the node's telemetry; empty for a node without GPUs."""
    row = node_for(request, node_id)
    if not row.is_gpu_node:
        return HttpResponse()
    known = telemetry_of(row, now=timezone.now())
    return render(request, "health/node/_telemetry.html", _telemetry_context(row, known, known.devices, request))


@part_response
def gpu_telemetry_part(request: PersonRequest, node_id: int, index: int) -> HttpResponse:
    gpu = gpu_at(node_id, index, user=request.user)
    if gpu is None:
        raise Http404
    known = telemetry_of(gpu.node, now=timezone.now())
    devices = of_gpu(known.devices, gpu)
    shown = _telemetry_context(gpu.node, known, devices, request)
    its = {
        "gpu": gpu,
        "why_none": known.why_none_of(gpu),
        "others": other_readings(devices),
        "serial": next((device.serial for device in devices if device.serial), ""),
        "uuid": _exported_uuid(gpu, devices),
        "is_reporting": any(reading.is_fresh for device in devices for reading in device.metrics.values()),
    }
    return render(request, "health/node/_telemetry.html", {**its, **shown})


def _exported_uuid(gpu: Gpu, devices: Sequence[DeviceTelemetry]) -> str:
    """Returns the UUID of the only board with the GPU's number, if no row has a UUID; empty if ambiguous or taken."""
    told = {device.uuid for device in devices if device.is_exported}
    if gpu.uuid or len(told) != 1 or Gpu.objects.filter(node=gpu.node, uuid__in=told).exists():
        return ""
    return told.pop()


def _telemetry_context(
    row: Node, known: NodeTelemetry, devices: Sequence[DeviceTelemetry], request: PersonRequest
) -> dict[str, Any]:
    return {
        "node": row,
        "known": known,
        "lines": lines_of(devices),
        "silent_since": instant(known.standing.silent_since),
        "by_prometheus": known.has_prometheus,
        "shares": row.sharing,
        "sees_source": scope_of(request.user, Permission.SEE).covers_cluster(row.cluster_id),
        "state": _state(known),
    }


def _state(known: NodeTelemetry) -> str:
    if known.trouble:
        return "error"
    if not known.standing.has_source:
        return "none" if known.source is None else "off"
    if known.standing.is_silent:
        return "waiting" if known.source and known.source.state == SourceState.WAITING else "silent"
    return "live" if any(device.is_exported for device in known.devices) else "unknown"


def lines_of(devices: Sequence[DeviceTelemetry]) -> list[DeviceLine]:
    """Returns lines, each board before its slices, even if the exporter has no series of the board."""
    lines, boards = [], {device.uuid for device in devices if not device.gi_id}
    for device in devices:
        if device.gi_id and device.uuid not in boards:
            boards.add(device.uuid)
            lines.append(_board_of(device))
        lines.append(_slice(device) if device.gi_id else _board(device))
    return lines


def _board(device: DeviceTelemetry) -> DeviceLine:
    metrics = device.metrics
    limit = metrics["power_limit_watts"].value
    return DeviceLine(
        device,
        device.board,
        temperature=cell_of(metrics["temperature_celsius"], "{:.0f} °C"),
        busy=cell_of(device.busy, "{:.0%}", title=_title_of_busy(device)),
        memory=_memory(device),
        power=cell_of(metrics["power_watts"], "{:.0f} W", beside="" if limit is None else f"of {limit:.0f} W"),
        xid=_xid(device),
        is_bad=bool(metrics["xid"].value),
        sampled_at=_sampled_at(device),
        is_old=not any(reading.is_fresh for reading in metrics.values()),
    )


def _board_of(device: DeviceTelemetry) -> DeviceLine:
    """Returns the board's line from its slices, which all repeat its values."""
    own = ReadingCell(ReadingState.NOT_APPLICABLE.value, "by slice")
    return replace(_board(device), busy=own, memory=own)


def _slice(device: DeviceTelemetry) -> DeviceLine:
    whole = _board(device)
    return replace(whole, name=f"slice {device.gi_id}", temperature=None, power=None, xid=None, is_slice=True)


def _memory(device: DeviceTelemetry) -> ReadingCell:
    used, free = device.metrics["memory_used_mib"], device.metrics["memory_free_mib"]
    of = f"of {gib(used.value + free.value)} GiB" if used.value is not None and free.value is not None else ""
    return cell_of(used, "{} GiB", read=gib, beside=of)


def _sampled_at(device: DeviceTelemetry) -> datetime | None:
    times = [reading.sampled_at for reading in device.metrics.values() if reading.sampled_at is not None]
    return instant(max(times, default=None))


def _title_of_busy(device: DeviceTelemetry) -> str:
    if device.is_mig:
        return "Activity of the graphics engine. Under MIG the usual utilisation is not exported"
    return "" if device.metrics["gpu_utilisation_ratio"].value is not None else "Graphics engine active"


def _xid(device: DeviceTelemetry) -> ReadingCell:
    reading = device.metrics["xid"]
    if reading.value is None:
        return cell_of(reading, "")
    words = "none" if not reading.value else f"Xid {reading.value:.0f}"
    return ReadingCell(reading_style(reading), words, device.xid_words, "The last Xid since the driver was loaded")
