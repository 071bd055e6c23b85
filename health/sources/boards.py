"""Replaced GPU boards, as entries of a node's timeline. The number of GPUs stays, and no API object reports the change.

A board is known by its UUID, which no boot, reset or MIG layout changes: NVIDIA's is "globally unique immutable" (NVML,
nvmlDeviceGetUUID). Earlier boards of a node are in its hourly rows, since a repair takes longer than a snapshot
remembers.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db.models import Max

from fleet.history.lines import BOARD
from fleet.models import Node, NodeEvent
from health.models import GpuHour
from health.telemetry.base import TelemetryReading
from health.telemetry.snapshot import GpuDevice
from health.telemetry.snapshot_memory import reporting_devices
from wording.lists import names

NODES_AT_MOST = 50  # at once: a change on more nodes is renaming by exporters, not a swap of GPUs
_OF_NVIDIA = re.compile(r"GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True)
class BoardsOfNode:
    reporting_devices: Collection[str]  # now
    came: Collection[str]  # of these since the frame before
    hours: Mapping[
        str, datetime
    ]  # the last hour with telemetry of each board, also from an earlier machine of that name
    was_added: Mapping[str, bool]  # per board: true if its last timeline entry added it

    def swapped(self, *, since: datetime) -> tuple[list[str], list[str]]:
        """Returns removed and added boards, equally many. `since` excludes samples of an earlier machine of that name.

        A board seen here before is new only if it was recorded as removed. If no board stays and the UUIDs are not
        NVIDIA's, exporters may have renamed the same boards.
        """
        new = {uuid for uuid in self.came if not self.was_added.get(uuid, uuid in self.hours)}
        gone = {
            uuid
            for uuid, hour in self.hours.items()
            if hour >= since and uuid not in self.reporting_devices and self.was_added.get(uuid, True)
        }
        stays = self.hours.keys() & set(self.reporting_devices)
        is_sure = stays or all(map(_OF_NVIDIA.fullmatch, new | gone))
        return (sorted(gone), sorted(new)) if is_sure and len(gone) == len(new) else ([], [])


def write(cluster_id: int, taken: TelemetryReading, *, now: float) -> int:
    """Writes one entry per node and returns how many. Four statements at most, and none without a new board."""
    came = _boards_by_node(taken.came)
    if not came or len(came) > NODES_AT_MOST:
        return 0
    there = _boards_by_node(taken.snapshot.devices[place] for place in reporting_devices(taken.snapshot))
    nodes = list(Node.objects.filter(cluster=cluster_id, name__in=came).only("name", "uid", "created_at"))
    hours, was_added = _hours(cluster_id, came), _last_timeline_events(cluster_id, nodes)
    lines = []
    for node in nodes:
        its = there[node.name]
        boards = BoardsOfNode(its, came[node.name].keys() & its.keys(), hours[node.name], was_added[node.uid])
        gone, new = boards.swapped(since=node.created_at)
        if new:
            lines.append(
                NodeEvent(
                    cluster_id=cluster_id,
                    node_uid=node.uid,
                    node_name=node.name,
                    at=datetime.fromtimestamp(now, UTC),
                    kind=BOARD,
                    sentence=_replacement_sentence(gone, new),
                    detail=_detail(gone, new, its, hours[node.name]),
                )
            )
    NodeEvent.objects.bulk_create(lines)
    return len(lines)


def _boards_by_node(devices: Iterable[GpuDevice]) -> dict[str, dict[str, int | None]]:
    found: dict[str, dict[str, int | None]] = defaultdict(dict)
    for device in devices:
        found[device.node_name][device.uuid] = device.index
    return found


def _hours(cluster_id: int, node_names: Collection[str]) -> dict[str, dict[str, datetime]]:
    """Returns by node and UUID the last hour with samples there."""
    rows = GpuHour.objects.filter(cluster=cluster_id, node_name__in=node_names).order_by()
    found: dict[str, dict[str, datetime]] = defaultdict(dict)
    for name, uuid, hour in rows.values_list("node_name", "uuid").annotate(Max("hour")):
        found[name][uuid] = hour
    return found


def _last_timeline_events(cluster_id: int, nodes: Iterable[Node]) -> dict[str, dict[str, bool]]:
    events = NodeEvent.objects.filter(cluster=cluster_id, node_uid__in=[node.uid for node in nodes], kind=BOARD)
    found: dict[str, dict[str, bool]] = defaultdict(dict)
    for uid, detail in events.order_by("at", "pk").values_list("node_uid", "detail"):
        found[uid] |= dict(_board_events(detail))
    return found


def _board_events(detail: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    yield from ((each["uuid"], False) for each in detail["gone"])
    yield from ((each["uuid"], True) for each in detail["new"])


def _replacement_sentence(gone: Sequence[str], new: Sequence[str]) -> str:
    if len(new) == 1:
        return f"GPU {gone[0]} was replaced by {new[0]}."
    return f"{len(new)} GPUs were replaced. Removed: {names(gone)}. New: {names(new)}."


def _detail(
    gone: Iterable[str], new: Iterable[str], its: Mapping[str, int | None], hours: Mapping[str, datetime]
) -> dict[str, Any]:
    return {
        "gone": [{"uuid": uuid, "last_hour": hours[uuid].isoformat()} for uuid in gone],
        "new": [{"uuid": uuid, "gpu": its[uuid]} for uuid in new],
    }
