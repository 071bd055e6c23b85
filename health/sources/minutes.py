"""The last 24 h of GPU telemetry at one-minute steps, as rows, if exporters are read directly (docs/design/0011)."""

import math
from array import array
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby

import msgspec
from django.db import transaction
from django.db.models import QuerySet

from fleet.models import ExportersState
from fleet.models.exporter import ASKED_AT_MOST
from health.models import GpuMinuteBlock
from health.sources.node_telemetry import DeviceTelemetry, NodeTelemetry
from health.telemetry.minutes import (
    BLOCK_S,
    KEPT_S,
    MINUTE_S,
    MinuteBlock,
    MinuteSamples,
    block_begin,
    samples_of,
)
from health.telemetry.prometheus.ranges import Steps
from health.telemetry.snapshot import GpuDeviceKey, TelemetrySnapshot

AT_ONCE = 50  # rows a transaction: none takes 100 ms
BLOCK = timedelta(seconds=BLOCK_S)


class PackedBlock(msgspec.Struct):
    devices: list[GpuDeviceKey]
    columns: dict[str, bytes]


PACKED = msgspec.msgpack.Decoder(PackedBlock)


def write_minute(cluster_id: int, snapshot: TelemetrySnapshot, *, assert_lease: Callable[[], None], now: float) -> None:
    """Writes the minute of `now` into the current blocks, once. Later rounds of the same minute write nothing.

    :raises LostLease: when another worker has taken the round over
    """
    at, begin = _instant(now), _instant(block_begin(now))
    blocks = GpuMinuteBlock.objects.filter(cluster=cluster_id, begins_at=begin)
    if blocks.filter(kept_at__gte=_instant(now - now % MINUTE_S)).exists():
        return
    by_node = dict(_devices_by_node(snapshot, samples_of(snapshot, now=now)))
    nodes = list(by_node)
    for start in range(0, len(nodes), AT_ONCE):
        names = nodes[start : start + AT_ONCE]
        with transaction.atomic():
            assert_lease()
            packed = dict(blocks.filter(node_name__in=names).values_list("node_name", "packed"))
            rows = []
            for name in names:
                devices, samples = by_node[name]
                block = _unpacked(packed.get(name, b""), begins_at=begin.timestamp())
                block.add(devices, samples, at=now)
                rows.append(_minute_block_row(cluster_id, name, block, kept_at=at))
            GpuMinuteBlock.objects.bulk_create(
                rows,
                update_conflicts=True,
                unique_fields=("cluster", "node_name", "begins_at"),
                update_fields=("kept_at", "packed"),
            )


def minutes_of(
    cluster_id: int, node_name: str, devices: Collection[GpuDeviceKey], metrics: Collection[str], asked: Steps
) -> "Mapping[tuple[str, GpuDeviceKey], array[float]]":
    """Returns by metric and device a value for each instant of `asked`, which are whole minutes. One query.

    NaN means no sample.
    """
    first, last = _instant(asked.first), _instant(asked.last)
    rows = GpuMinuteBlock.objects.filter(
        cluster=cluster_id, node_name=node_name, begins_at__gt=first - BLOCK, begins_at__lte=last
    )
    lines: dict[tuple[str, GpuDeviceKey], array[float]] = {}
    for begins_at, packed in rows.values_list("begins_at", "packed"):
        block = _unpacked(packed, begins_at=begins_at.timestamp())
        start = round(block.begins_at - asked.first) // MINUTE_S
        skipped = max(0, -start)
        for device in devices:
            for metric in metrics:
                values = block.line(metric, device)
                if values is None:
                    continue
                line = lines.setdefault((metric, device), array("d", [math.nan]) * asked.number)
                within = values[skipped : asked.number - start]
                line[start + skipped : start + skipped + len(within)] = within
    return lines


def too_old(*, now: datetime) -> QuerySet[GpuMinuteBlock]:
    """Returns the blocks older than any window of 24 h."""
    return GpuMinuteBlock.objects.filter(begins_at__lte=now - timedelta(seconds=KEPT_S) - BLOCK)


def _devices_by_node(
    snapshot: TelemetrySnapshot, samples: MinuteSamples
) -> Iterator[tuple[str, tuple[list[GpuDeviceKey], MinuteSamples]]]:
    """Yields the devices of each node, which are adjacent in a snapshot, and their samples.

    Nodes without samples are left out.
    """
    start = 0
    for name, group in groupby(snapshot.devices, key=lambda device: device.node_name):
        devices = [device.key for device in group]
        end = start + len(devices)
        its = {metric: values[start:end] for metric, values in samples.items()}
        start = end
        if any(value == value for values in its.values() for value in values):
            yield name, (devices, its)


def _minute_block_row(cluster_id: int, node_name: str, block: MinuteBlock, *, kept_at: datetime) -> GpuMinuteBlock:
    columns = {metric: column.tobytes() for metric, column in block.columns.items()}
    packed = msgspec.msgpack.encode(PackedBlock(block.devices, columns))
    begins_at = _instant(block.begins_at)
    return GpuMinuteBlock(
        cluster_id=cluster_id, node_name=node_name, begins_at=begins_at, kept_at=kept_at, packed=packed
    )


def _unpacked(packed: bytes | memoryview, *, begins_at: float) -> MinuteBlock:
    """Returns the block; an empty one if there is none or another version wrote it."""
    empty = MinuteBlock(begins_at)
    try:
        kept = PACKED.decode(packed)
        columns = {metric: array("h", column) for metric, column in kept.columns.items()}
    except (msgspec.MsgspecError, ValueError):
        return empty
    block = MinuteBlock(begins_at, kept.devices, columns)
    return block if block.is_whole() else empty


def _instant(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)


SOON = "The first points appear within two minutes"


def why_not_kept(known: NodeTelemetry) -> str:
    """Returns why the cluster's minutes are not stored; empty if they are."""
    state = ExportersState(known.exporters.state) if known.exporters is not None else ExportersState.WAITING
    lacking = "The cluster has no Prometheus" if known.source is None else "The cluster's Prometheus is disabled"
    if known.exporters is not None and state == ExportersState.TOO_MANY:
        return (
            f"{lacking}. The cluster has {known.exporters.exporters} exporters, and Quarterdeck queries at most "
            f"{ASKED_AT_MOST}, so it stores no values. Add a Prometheus for plots."
        )
    if known.standing.has_source:
        return ""
    reason = {
        ExportersState.NONE: "no GPU exporter is seen in the cluster.",
        ExportersState.FORBIDDEN: "Quarterdeck may not query its exporters.",
        ExportersState.UNSEEN: "its exporters are not queried, because the cluster does not answer.",
    }.get(state, f"no exporter has answered yet. {SOON} of the first answer.")
    return f"{lacking}, and {reason}"


def why_no_line(devices: Sequence[DeviceTelemetry], asked: Steps, *, whose: str, now: datetime) -> str:
    """Returns why these devices have no minute in this time, for a cluster whose minutes are stored."""
    if asked.last < now.timestamp() - KEPT_S:
        return "Without a Prometheus, values are stored for 24 h. This time is earlier."
    if not devices:
        return f"No exporter has reported {whose}."
    if asked.last < now.timestamp() - 2 * MINUTE_S:
        return "No values of this time were stored."
    if any(reading.is_fresh for device in devices for reading in device.metrics.values()):
        return f"{SOON}."
    return "The exporter of this node did not answer in this time."
