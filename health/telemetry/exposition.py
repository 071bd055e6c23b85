"""What one exporter says of the GPUs of its node: the lines of its metrics that are known, as values. Pure.

prometheus.io/docs/instrumenting/exposition_formats: a line is a name, labels in braces, a value, perhaps a time. Only
series of `metrics.py` are read, and of a line only what is needed: of 300 lines a node, with nodes by the hundred.
"""

import math
import re
from collections import Counter
from dataclasses import dataclass, field

from health.telemetry.base import PART_CHARS, XidTold
from health.telemetry.exporter import UnreadableMetrics
from health.telemetry.frame import GpuDevice, GpuDeviceKey
from health.telemetry.identity import device_of
from health.telemetry.metrics import BLANKS, SERIES, MetricSeries

LINES_AT_MOST = 20_000  # 16 boards of 7 slices with 40 series are 4,480
# After the value may stand a time, which OpenMetrics writes with a fraction (prometheus/common, expfmt/
# openmetrics_create.go: as 1.7e+09), and there an exemplar.
_LINE = re.compile(
    r'\s*([a-zA-Z_:][a-zA-Z0-9_:]*)\s*\{([^"}]*(?:"(?:[^"\\]|\\.)*"[^"}]*)*)\}\s*(\S+)'
    r"(?:\s+-?[\d.]+(?:[eE][+-]?\d+)?)?\s*(?:# .*)?$"
)
_LABEL = re.compile(r'[\s,]*([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")

HOST = ("Hostname", "hostname")
PARTS_AT_MOST = 64  # of one metric of one device: more are not worth naming


@dataclass
class NodeSaid:
    """Values in the units of `metrics.py`, by device and metric. Of several series of a device the highest counts."""

    devices: dict[GpuDeviceKey, GpuDevice] = field(default_factory=dict)
    values: dict[GpuDeviceKey, dict[str, float]] = field(default_factory=dict)
    xids: dict[GpuDeviceKey, XidTold] = field(default_factory=dict)
    parts: dict[GpuDeviceKey, dict[str, dict[str, float]]] = field(default_factory=dict)  # as `base.Parts`
    without: dict[GpuDeviceKey, set[str]] = field(default_factory=dict)  # metrics with a series whose value none can be
    called: set[str] = field(default_factory=set)  # by itself: its node's name, as a rule, or its pod's
    nameless: int = 0  # series of a GPU that do not say which
    unread: str = ""  # the first name of a GPU's series, where none that has one is read
    impossible: Counter[str] = field(default_factory=Counter)  # values that no GPU can have, by the series' name


def read_node(text: str, node_name: str) -> NodeSaid:
    """:raises UnreadableMetrics: it is no text of metrics, or more than any node has"""
    said, number, is_text = NodeSaid(), 0, False
    for line in text.replace("\0", "").split("\n"):  # PostgreSQL keeps no NUL
        if not line or line.startswith("#"):
            is_text = is_text or line.startswith("# ")
            continue
        number += 1
        if number > LINES_AT_MOST:
            raise UnreadableMetrics(f"It has more than {LINES_AT_MOST} series: no node has so many GPUs.")
        match = _LINE.match(line)
        if match is None:
            continue
        is_text = True
        known = SERIES.get(match.group(1), ())
        for series in known:
            _take(said, match, series, node_name)
        if not (known or said.devices or said.unread) and device_of(_labels(match.group(2)), ""):
            said.unread = match.group(1)[:100]
    if text.strip() and not is_text:
        raise UnreadableMetrics("What it answers is no text of metrics.")
    if said.devices or said.nameless:
        said.unread = ""
    return said


def _take(said: NodeSaid, match: "re.Match[str]", series: MetricSeries, node_name: str) -> None:
    try:
        value = float(match.group(3))
    except ValueError:
        return
    if series.only and _labels(match.group(2)).get(series.label) not in series.only:
        return
    labels = _labels(match.group(2))
    device = device_of(labels, node_name)
    least, most = series.bounds
    if not least <= value <= most:  # nor is NaN
        said.impossible[series.name] += value == value and value not in BLANKS
        if device is not None:
            said.without.setdefault(device.key, set()).add(series.metric)
        return
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
        said.xids[device.key] = XidTold(int(value), labels.get("err_msg", "")[:300])


def _labels(text: str) -> dict[str, str]:
    """Up to what is no label. From one to the next: to search for one costs the square of a text that has none."""
    found, at = dict[str, str](), 0
    while match := _LABEL.match(text, at):
        found[match.group(1)] = _ESCAPED.sub(r"\1", match.group(2))
        at = match.end()
    return found


def _take_part(parts: dict[str, float], part: str, value: float) -> None:
    """Two series of one value of the label differ by another, such as the code of an error: the higher counts."""
    if part in parts or len(parts) < PARTS_AT_MOST:
        parts[part] = max(value, parts.get(part, value))
