"""GPU resets, as entries of a node's timeline, from counters that restart. Exporters report resets in no other way."""

from collections import defaultdict
from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from typing import Any

from fleet.history.lines import RESET
from fleet.models import Node, NodeEvent
from health.telemetry.base import TelemetryReading
from health.telemetry.snapshot_memory import reporting_devices

OF_NODE = ("name", "uid", "mig_config_state", "mig_is_overdue")


def write(cluster_id: int, taken: TelemetryReading, *, now: float) -> int:
    """Writes entries and returns how many: one per GPU, or one per node if all its reporting GPUs were reset.

    Two statements if there is any reset. A change of the MIG layout resets the node's GPUs.
    """
    anew: dict[str, set[int]] = defaultdict(set)
    for device in taken.anew:
        if device.index is not None:
            anew[device.node_name].add(device.index)
    if not anew:
        return 0
    there: dict[str, set[int | None]] = defaultdict(set)
    for place in reporting_devices(taken.snapshot):
        device = taken.snapshot.devices[place]
        there[device.node_name].add(device.index)
    at = datetime.fromtimestamp(now, UTC)
    nodes = Node.objects.filter(cluster=cluster_id, name__in=anew).only(*OF_NODE)
    lines = [
        NodeEvent(cluster_id=cluster_id, node_uid=node.uid, node_name=node.name, at=at, **line)
        for node in nodes
        for line in _reset_lines(anew[node.name], there[node.name])
        if line["kind"] != RESET or not node.reconfiguring
    ]
    NodeEvent.objects.bulk_create(lines)
    return len(lines)


def _reset_lines(indices: set[int], there: Collection[int | None]) -> Iterator[dict[str, Any]]:
    if indices.issuperset(there):
        number = len(indices)
        sentence = (
            "The counters of its GPU restarted at zero: the driver was reloaded, or the GPU was reset."
            if number == 1
            else (
                f"The counters of all {number} GPUs restarted at zero: the driver was reloaded, or all GPUs were reset."
            )
        )
        yield {"kind": "reload", "sentence": sentence, "detail": {"gpus": number}}
        return
    for index in sorted(indices):
        sentence = f"The counters of GPU {index} restarted at zero: the GPU was reset."
        yield {"kind": RESET, "sentence": sentence, "detail": {"gpu": index}}
