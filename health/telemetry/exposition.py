"""Decodes one exporter's text: the values of the known metrics of its node's GPUs. Pure.

Only series of `metrics.py` are decoded, and only the needed parts of a line: a node has 300 lines, and there are
hundreds of nodes.
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from health.telemetry.base import PART_CHARS, DeviceXid
from health.telemetry.identity import device_of
from health.telemetry.lines import MetricLine, labels_in, lines_in
from health.telemetry.metrics import BLANKS, SERIES, MetricSeries
from health.telemetry.snapshot import GpuDevice, GpuDeviceKey

HOST = ("Hostname", "hostname")
WORDS = 300  # of an exporter for an Xid
PARTS_AT_MOST = 64  # of one metric of one device: more are not worth naming


@dataclass
class NodeSamples:
    """Values in the units of `metrics.py`, by device and metric. If a device has several series, the highest counts."""

    devices: dict[GpuDeviceKey, GpuDevice] = field(default_factory=dict)
    values: dict[GpuDeviceKey, dict[str, float]] = field(default_factory=dict)
    xids: dict[GpuDeviceKey, DeviceXid] = field(default_factory=dict)
    parts: dict[GpuDeviceKey, dict[str, dict[str, float]]] = field(default_factory=dict)  # as `base.Parts`
    without: dict[GpuDeviceKey, set[str]] = field(default_factory=dict)  # metrics with a series whose value none can be
    called: set[str] = field(default_factory=set)  # by itself: its node's name, as a rule, or its pod's
    unplaced_xids: dict[int, DeviceXid] = field(default_factory=dict)  # by number, of series that name no GPU
    nameless: int = 0  # series of a GPU that do not say which
    unread: str = ""  # the first name of a GPU's series, where none that has one is read
    impossible: Counter[str] = field(default_factory=Counter)  # values that no GPU can have, by the series' name


def read_node(text: str, node_name: str) -> NodeSamples:
    """Returns the values of a node.

    :raises UnreadableMetrics: when it is no text of metrics, or longer than any node's
    """
    said = NodeSamples()
    for line in lines_in(text):
        known = SERIES.get(line.name, ())
        for series in known:
            _store_sample(said, line, series, node_name)
        if not (known or said.devices or said.unread) and device_of(labels_in(line.labels), ""):
            said.unread = line.name[:100]
    if said.devices or said.nameless:
        said.unread = ""
    return said


def _store_sample(said: NodeSamples, line: MetricLine, series: MetricSeries, node_name: str) -> None:
    value = line.value
    if value is None:
        return
    labels = labels_in(line.labels)
    if series.only and labels.get(series.label) not in series.only:
        return
    device = device_of(labels, node_name)
    least, most = series.bounds
    if not least <= value <= most:  # nor is NaN
        said.impossible[series.name] += value == value and value not in BLANKS
        if device is not None:
            said.without.setdefault(device.key, set()).add(series.metric)
        return
    if device is None and series.metric == "xid":
        _take_unplaced(said, int(value), labels)
    if device is None:
        said.nameless += bool(labels.get("gpu") or labels.get("gpu_id"))  # else it is a switch's or a link's
        return
    part = labels.get(series.label, "")[:PART_CHARS] if series.label and series.has_parts else ""
    said.devices.setdefault(device.key, device)
    said.called.update(name for label in HOST if (name := labels.get(label)))
    values = said.values.setdefault(device.key, {})
    values[series.metric] = max(value * series.factor, values.get(series.metric, -math.inf))
    if part and value > 0:
        _take_part(said.parts.setdefault(device.key, {}).setdefault(series.metric, {}), part, value)
    if series.metric == "xid" and value >= 1:
        said.xids[device.key] = DeviceXid(int(value), labels.get("err_msg", "")[:WORDS])


def _take_unplaced(said: NodeSamples, xid: int, labels: Mapping[str, str]) -> None:
    if xid >= 1 and len(said.unplaced_xids) < PARTS_AT_MOST:
        said.unplaced_xids.setdefault(xid, DeviceXid(xid, labels.get("err_msg", "")[:WORDS]))


def _take_part(parts: dict[str, float], part: str, value: float) -> None:
    """Stores the higher value of series that share this label value and differ in another, such as an error code."""
    if part in parts or len(parts) < PARTS_AT_MOST:
        parts[part] = max(value, parts.get(part, value))
