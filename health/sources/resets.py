"""GPUs that count from nothing again, as lines of their nodes' timelines. No exporter tells of a reset otherwise."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from fleet.models import Node, NodeEvent
from health.telemetry.base import TelemetryReading


def write(cluster_id: int, taken: TelemetryReading, *, now: float) -> int:
    """How many lines: one for each GPU, and one for a node all of whose GPUs do. Two statements, if any does."""
    anew: dict[str, set[int]] = defaultdict(set)
    for device in taken.anew:
        if device.index is not None:
            anew[device.node_name].add(device.index)
    if not anew:
        return 0
    every: dict[str, set[int | None]] = defaultdict(set)
    for device in taken.frame.devices:
        every[device.node_name].add(device.index)
    at = datetime.fromtimestamp(now, UTC)
    nodes = Node.objects.filter(cluster=cluster_id, name__in=anew).values_list("name", "uid")
    lines = [
        NodeEvent(cluster_id=cluster_id, node_uid=uid, node_name=name, at=at, **line)
        for name, uid in nodes
        for line in _lines(anew[name], len(every[name]))
    ]
    NodeEvent.objects.bulk_create(lines)
    return len(lines)


def _lines(indices: set[int], number: int) -> Iterator[dict[str, Any]]:
    if len(indices) == number:
        sentence = (
            "Its GPU counts from nothing again: its driver was loaded anew, or it was reset."
            if number == 1
            else f"All its {number} GPUs count from nothing again: their driver was loaded anew, or all were reset."
        )
        yield {"kind": "reload", "sentence": sentence, "detail": {"gpus": number}}
        return
    for index in sorted(indices):
        sentence = f"GPU {index} counts from nothing again: it was reset."
        yield {"kind": "reset", "sentence": sentence, "detail": {"gpu": index}}
