"""Builds a cluster's telemetry snapshot from exporters if it has no Prometheus.

Partial data is marked as such: devices of a node that did not answer keep their last values and times.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import replace

from fleet.models import Cluster
from health.models import TelemetrySource
from health.sources import snapshots
from health.sources.xid_recall import add_counted_xids, recall_xids
from health.telemetry.base import FORGET_AFTER_S, DeviceXid, Parts, TelemetryReading, UnplacedXids
from health.telemetry.exposition import NodeSamples
from health.telemetry.identity import Whereabouts, silenced
from health.telemetry.metrics import METRICS
from health.telemetry.snapshot import WITHOUT, GpuDevice, GpuDeviceKey, MetricColumn, TelemetrySnapshot, in_order
from health.telemetry.snapshot_memory import put_in_words, remember


def has_prometheus(cluster: Cluster) -> bool:
    """Returns whether a Prometheus is configured. Then exporters make no snapshot."""
    return TelemetrySource.objects.filter(cluster=cluster, is_on=True).exists()


def exporter_reading(
    cluster: Cluster, said: Mapping[str, NodeSamples], *, nodes: Collection[str], now: float
) -> TelemetryReading | None:
    """Returns the reading from answers by node; None if a Prometheus is the source, or no node answered.

    :raises SnapshotsUnavailable: when Redis does not return the previous snapshot
    """
    if not said or has_prometheus(cluster):
        return None
    kept = snapshots.newest(cluster.pk)
    before = kept.snapshot if kept else TelemetrySnapshot(now, ())
    taken = updated_snapshot(before, said, nodes=nodes, now=now)
    silent = {node: xids for node, xids in kept.unplaced_xids.items() if node not in said} if kept else {}
    taken = replace(taken, unplaced_xids={**silent, **_unplaced_xids(said)})
    recall_xids(cluster.pk, before, taken.snapshot)
    add_counted_xids(taken)
    return taken


def updated_snapshot(
    before: TelemetrySnapshot, said: Mapping[str, NodeSamples], *, nodes: Collection[str], now: float
) -> TelemetryReading:
    """Returns the previous snapshot updated with these answers. Pure.

    A device claimed by two nodes is left out, since it is unknown which claim is true.
    """
    contested = contested_in(said)
    told = [device for each in said.values() for key, device in each.devices.items() if key not in contested]
    oldest = now - FORGET_AFTER_S
    carried = before.carried(
        in_order([*told, *_missing_devices(before, told, said, contested, nodes, since=oldest)]), forget_before=oldest
    )
    snapshot = carried.copied()
    snapshot.taken_at = now
    places = snapshot.index()
    for each in said.values():
        for key, values in each.values.items():
            if key in contested:
                continue
            for metric, value in values.items():
                column = snapshot.columns.setdefault(metric, MetricColumn.empty(len(snapshot.devices)))
                column.values[places[key]], column.times[places[key]] = value, now
        for key, metrics in each.without.items():
            for metric in metrics if key in places and key not in contested else ():
                column = snapshot.columns.setdefault(metric, MetricColumn.empty(len(snapshot.devices)))
                if math.isnan(column.times[places[key]]):
                    column.times[places[key]] = WITHOUT
    anew = tuple(snapshot.devices[place] for place in remember(carried, snapshot))
    xids = _xids(said, contested)
    put_in_words(snapshot, xids)
    exported = frozenset(
        key for key in METRICS if key in snapshot.columns and not math.isnan(snapshot.columns[key].newest())
    )
    came = snapshot.new_boards_since(before)
    return TelemetryReading(snapshot, exported, xids, parts=_merge_parts(said, contested), anew=anew, came=came)


def contested_in(said: Mapping[str, NodeSamples]) -> Mapping[GpuDeviceKey, Collection[str]]:
    claimed: dict[GpuDeviceKey, set[str]] = {}
    for node, each in said.items():
        for key in each.devices:
            claimed.setdefault(key, set()).add(node)
    return {key: by for key, by in claimed.items() if len(by) > 1}


def _missing_devices(
    before: TelemetrySnapshot,
    told: list[GpuDevice],
    said: Mapping[str, NodeSamples],
    contested: Collection[GpuDeviceKey],
    nodes: Collection[str],
    *,
    since: float,
) -> list[GpuDevice]:
    """Returns devices missing now: of nodes that did not answer, and silent boards of nodes that did."""
    there = {device.key for device in told}
    where = Whereabouts(frozenset(nodes))
    silent = {device.key for device in silenced(before, told, where, since=since, contested=contested)}
    return [
        device
        for device in before.devices
        if device.key not in there
        and device.key not in contested
        and device.node_name in nodes
        and (device.node_name not in said or device.key in silent)
    ]


def _unplaced_xids(said: Mapping[str, NodeSamples]) -> UnplacedXids:
    return {node: tuple(each.unplaced_xids.values()) for node, each in said.items() if each.unplaced_xids}


def _xids(said: Mapping[str, NodeSamples], contested: Collection[GpuDeviceKey]) -> dict[GpuDeviceKey, DeviceXid]:
    return {key: told for each in said.values() for key, told in each.xids.items() if key not in contested}


def _merge_parts(said: Mapping[str, NodeSamples], contested: Collection[GpuDeviceKey]) -> Parts:
    return {key: parts for each in said.values() for key, parts in each.parts.items() if key not in contested}
