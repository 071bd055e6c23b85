"""Pods whose GPUs did nothing: by the roll-ups of whole hours, by what GPUs say now, and by who holds them."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Count, Q

from fleet.allocation.holders import held_on
from fleet.allocation.holding import Board, Held
from fleet.models import Cluster, Node, Pod
from health.judging.gpus import Hearing
from health.models import GpuHour
from health.rules.base import IdlePod
from health.rules.idle_gpus import BELOW, patiences

HOUR = timedelta(hours=1)
WRITTEN_WITHIN = timedelta(minutes=10)  # an hour's rows come with the first round after it
HEARD_FOR = 0.9  # of an hour: of one that was heard for less nobody knows what was in it
NODES_AT_MOST = 200  # that are looked at: where more are idle it is no one pod


def idle_pods(cluster: Cluster, hearing: Hearing | None, *, now: datetime) -> dict[str, tuple[IdlePod, ...]]:
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
    by_key = {node.pk: node.name for node in nodes}
    at = {(device.node_name, device.index): device.uuid for device in hearing.devices}
    held = {}
    for pk, its in held_on(nodes, now=now).items():
        boards = {board: idle.get(board.uuid or at.get((by_key[pk], board.index), ""), 0) for board in its.boards}
        held[by_key[pk]] = _pods(its, boards, end)
    return {name: pods for name, pods in held.items() if pods}


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


def _pods(held: Held, idle: Mapping[Board, int], end: datetime) -> tuple[IdlePod, ...]:
    """Where nothing says which GPU a pod has, only those of a node that is idle as a whole."""
    boards: dict[int, list[int]] = defaultdict(list)  # by the pod's key, for how many hours each of its boards
    pods: dict[int, Pod] = {}
    for board in held.boards:
        for holder in board.holders:
            if not holder.only_looks:
                pods[holder.pod.pk] = holder.pod
                boards[holder.pod.pk].append(idle[board])
    fewest = min(idle.values(), default=0)  # 0: one of them works
    for one in held.unplaced:
        pods[one.pod.pk] = one.pod
        boards[one.pod.pk] += [fewest] * (one.number or 0)
    found = []
    for key, pod in pods.items():
        lasting = [each for hours in boards[key] if (each := min(hours, _held_for(pod, end)))]
        if lasting:
            found.append(IdlePod(f"{pod.namespace}/{pod.name}", len(lasting), min(lasting)))
    return tuple(sorted(found, key=lambda one: one.name))


def _held_for(pod: Pod, end: datetime) -> int:
    """The longest of the patiences for which it was there."""
    if not pod.is_tenant or pod.started_at is None:
        return 0
    started = pod.started_at
    return max((hours for hours in patiences() if started <= end - hours * HOUR), default=0)
