"""Pods whose GPUs did nothing: by the roll-ups of whole hours, by what GPUs say now, and by who holds them."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Count, Q

from fleet.allocation.holders import held_on
from fleet.allocation.holding import Board, Held, Holder
from fleet.models import Cluster, Node, Pod
from gpu.resources import Layout, ResourceKind, Way
from gpu.resources.layout import HOW_NOT_SAID
from health.judging.gpus import Hearing
from health.models import GpuHour
from health.rules.base import HeldIdle
from health.rules.idle_gpus import BELOW, patiences

HOUR = timedelta(hours=1)
WRITTEN_WITHIN = timedelta(minutes=10)  # an hour's rows come with the first round after it
HEARD_FOR = 0.9  # of an hour: of one that was heard for less nobody knows what was in it
NODES_AT_MOST = 200  # that are looked at: where more are idle it is no one pod


def held_idle(cluster: Cluster, hearing: Hearing | None, *, now: datetime) -> dict[str, tuple[HeldIdle, ...]]:
    """By the node's name. A query; six more where a pod holds GPUs that did nothing. None where nobody listens."""
    if hearing is None:
        return {}
    end = (now.astimezone(UTC) - WRITTEN_WITHIN).replace(minute=0, second=0, microsecond=0)
    names = _candidates(cluster, end)
    if not names:
        return {}
    idle = _idle_hours(cluster, names, end)
    for uuid in hearing.busy(set(idle), least=BELOW):
        del idle[uuid]
    nodes = list(Node.objects.filter(cluster=cluster, name__in=names).with_gpus())
    by_key = {node.pk: node for node in nodes}
    at = {(device.node_name, device.index): device.uuid for device in hearing.devices}
    found = {}
    for pk, held in held_on(nodes, now=now).items():
        node = by_key[pk]
        uuids = {board: board.uuid or at.get((node.name, board.index), "") for board in held.boards}
        found[node.name] = _held(node, held, uuids, idle, end)
    return {name: held for name, held in found.items() if held}


def _candidates(cluster: Cluster, end: datetime) -> list[str]:
    """Nodes that tenants had GPUs of for the last hours, and of which a GPU did nothing in the last one."""
    fewest = min(patiences()) * HOUR
    holding = Pod.objects.filter(cluster=cluster, is_tenant=True, started_at__lte=end - fewest).not_done()
    rows = GpuHour.objects.filter(cluster=cluster, hour=end - HOUR, utilisation__lt=BELOW)
    rows = rows.filter(node_name__in=holding.order_by().values("node_name"))
    return list(rows.order_by("node_name").values_list("node_name", flat=True).distinct()[:NODES_AT_MOST])


def _idle_hours(cluster: Cluster, names: Collection[str], end: datetime) -> dict[str, int]:
    """By the board's UUID for how many of the hours that are asked for it did nothing, each of its slices counted."""
    is_idle = Q(utilisation__lt=BELOW, seen_s__gte=HEARD_FOR * HOUR.total_seconds())
    counts = {f"of_{hours}": Count("hour", filter=is_idle & Q(hour__gte=end - hours * HOUR)) for hours in patiences()}
    since = end - max(patiences()) * HOUR
    rows = GpuHour.objects.filter(cluster=cluster, node_name__in=names, hour__gte=since, hour__lt=end)
    found: dict[str, int] = {}
    counted: Any = rows.order_by().values("uuid", "gi_id").annotate(**counts)
    for row in counted:
        hours = max((each for each in patiences() if row[f"of_{each}"] == each), default=0)
        found[row["uuid"]] = min(hours, found.get(row["uuid"], hours))
    return {uuid: hours for uuid, hours in found.items() if hours}


def _held(
    node: Node, held: Held, uuids: Mapping[Board, str], idle: Mapping[str, int], end: datetime
) -> tuple[HeldIdle, ...]:
    """Where nothing says which GPU a pod has, only those of a node that is idle as a whole."""
    layout = Layout.read(node.layout)
    found = [
        HeldIdle(str(holder.pod), hours, uuids[board], _way(holder, board, layout))
        for board in held.boards
        for holder in board.holders
        if not holder.only_looks and (hours := min(idle.get(uuids[board], 0), _held_for(holder.pod, end)))
    ]
    fewest = min((idle.get(uuid, 0) for uuid in uuids.values()), default=0)  # 0: one of them works
    found += [
        HeldIdle(str(one.pod), hours, way=layout.way(one.resource), number=one.number)
        for one in held.unplaced
        if one.number and (hours := min(fewest, _held_for(one.pod, end)))
    ]
    return tuple(sorted(found, key=lambda one: (one.pod, one.board)))


def _way(holder: Holder, board: Board, layout: Layout) -> Way:
    """What a pod has of a board: one that it has together with another pod is shared, whatever its resource says."""
    way = layout.way(holder.resource)
    if holder.profile and not way.profile:
        way = replace(way, profile=holder.profile)
    pods = {one.pod.pk for one in board.holders if not one.only_looks}
    return replace(way, sharing=HOW_NOT_SAID) if way.kind is ResourceKind.WHOLE and len(pods) > 1 else way


def _held_for(pod: Pod, end: datetime) -> int:
    """The longest of the patiences for which it was there."""
    if not pod.is_tenant or pod.started_at is None:
        return 0
    started = pod.started_at
    return max((hours for hours in patiences() if started <= end - hours * HOUR), default=0)
