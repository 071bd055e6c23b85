"""Pods with idle GPUs, from the roll-ups of whole hours, the current load and the allocations.

Where a pool has a limit of its own, the idle time of its GPUs is counted by the minute instead.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any

import structlog
from django.db.models import Count, Max, Q

from fleet.allocation.allocations import Board, GpuAllocation, NodeAllocations
from fleet.allocation.gpu_holders import allocations_on
from fleet.models import Cluster, Node, Pod
from gpu.resources import Layout, ResourceKind, Way
from gpu.resources.layout import UNKNOWN_SHARING
from health.evaluation.exporter_silence import ReportingNodes
from health.evaluation.turns import is_turn_of
from health.models import Finding, GpuHour
from health.rules.base import IdleAllocation
from health.rules.idle_gpus import BELOW, IdleGpus, all_idle_hours, idle_hours_for, reported_hours_of
from health.sources.hours import idle_times
from health.sources.snapshots import SnapshotsUnavailable
from health.telemetry.hours import IdleTime
from health.telemetry.usage import REPORTED_FOR

log = structlog.get_logger(__name__)

HOUR = timedelta(hours=1)
WRITTEN_WITHIN = timedelta(minutes=10)  # an hour's rows come with the first round after it, or minutes later
ReportedIdleHours = Mapping[tuple[str, str], float]  # by pod and GPU: idle hours that its finding shows
NODES_AT_ONCE = 200
NO_LIMITS: Mapping[str, float] = MappingProxyType({})
EVERY = timedelta(minutes=5)
REPORTED = Q(seen_s__gte=REPORTED_FOR * HOUR.total_seconds())
IDLE, BUSY = REPORTED & Q(utilisation__lt=BELOW), REPORTED & Q(utilisation__gte=BELOW)


@dataclass(frozen=True)
class _Hours:
    idle: Mapping[str, int]  # for how many of the hours that are asked for it did nothing, up to now
    longest: Mapping[str, int]  # of these by node, at most
    worked: Collection[str]  # in the last hour with complete telemetry
    busy_now: Collection[str]  # devices that are busy now, or whose load is unknown
    end: datetime

    def of(self, uuid: str, reported: float) -> float:
        """Returns the idle hours of a board. `reported` is the number that an open finding reported.

        A reported board stays idle until one of its hours shows load. Neither silence nor a short load ends it.
        """
        if not reported and uuid in self.busy_now:
            return 0
        return max(self.idle.get(uuid, 0), 0 if uuid in self.worked else reported)

    def allocated_for(self, started_at: datetime) -> float:
        """Returns the longest reporting time for which a pod has existed."""
        return max((hours for hours in all_idle_hours() if started_at <= self.end - hours * HOUR), default=0)


@dataclass(frozen=True)
class _Minutes:
    """The same for a node whose pool has a limit of its own."""

    limit: float  # minutes
    times: Mapping[str, IdleTime]  # of its boards; empty: unknown
    busy_now: Collection[str]
    now: datetime

    def of(self, uuid: str, reported: float) -> float:
        """Returns the idle hours of a board. A reported one stays idle until a minute of it shows load."""
        time = self.times.get(uuid, IdleTime())
        if reported:
            return max(self._counted(time.measured_s), reported if time.quiet_s >= 60 * self.limit else 0)
        return 0 if uuid in self.busy_now else self._counted(time.measured_s)

    def allocated_for(self, started_at: datetime) -> float:
        return self._counted((self.now - started_at).total_seconds())

    def _counted(self, seconds: float) -> float:
        """Returns the hours in whole steps, so that a finding is not saved again each time; 0 below the limit."""
        limit_h, hours = self.limit / 60, seconds / 3600
        return 0 if hours < limit_h else max(limit_h, math.floor(hours))


@dataclass(frozen=True)
class _IdleSearch:
    allocated: NodeAllocations
    layout: Layout
    uuids: Sequence[str]  # of its boards, in their order
    hours: _Hours | _Minutes
    reported: ReportedIdleHours

    def found(self) -> tuple[IdleAllocation, ...]:
        return tuple(sorted([*self._placed(), *self._unplaced()], key=lambda one: (one.pod, one.board)))

    def _placed(self) -> Iterator[IdleAllocation]:
        for board, uuid in zip(self.allocated.boards, self.uuids, strict=True):
            for allocation in board.allocations:
                pod = str(allocation.pod)
                hours = self.hours.of(uuid, self.reported.get((pod, uuid), 0))
                if not allocation.only_looks and (lasting := min(hours, self._allocated_for(allocation.pod))):
                    yield IdleAllocation(pod, lasting, uuid, _way_of_allocation(allocation, board, self.layout))

    def _unplaced(self) -> Iterator[IdleAllocation]:
        """Yields pods whose GPU is unknown, if all GPUs of the node are idle."""
        for one in self.allocated.unplaced:
            pod = str(one.pod)
            hours = min((self.hours.of(uuid, self.reported.get((pod, ""), 0)) for uuid in self.uuids), default=0)
            if one.number and (lasting := min(hours, self._allocated_for(one.pod))):
                yield IdleAllocation(pod, lasting, way=self.layout.way(one.resource), number=one.number)

    def _allocated_for(self, pod: Pod) -> float:
        return self.hours.allocated_for(pod.started_at) if pod.is_tenant and pod.started_at else 0


def idle_allocations(
    cluster: Cluster,
    reporting: ReportingNodes | None,
    classes: Mapping[int, Collection[str]],
    *,
    now: datetime,
    own: Mapping[str, float] = NO_LIMITS,
) -> dict[str, tuple[IdleAllocation, ...]]:
    """Returns idle allocations by node name; none without telemetry.

    Two queries; two more for every 200 nodes with idle GPUs, and four if any was idle for the rule's time. `classes`
    holds the workload classes of a node's pools by the node's key, and `own` the minutes of nodes by name whose pools
    have a limit of their own.
    """
    if reporting is None:
        return {}
    end = (now.astimezone(UTC) - WRITTEN_WITHIN).replace(minute=0, second=0, microsecond=0)
    reported = _reported_hours(cluster)
    times = _idle_times(cluster) if own else {}
    long = {name for name, minutes in own.items() if _longest_s(times.get(name, {})) >= 60 * minutes}
    names = sorted({*_candidates(cluster, end).difference(own), *long, *reported})
    found: dict[str, tuple[IdleAllocation, ...]] = {}
    for start in range(0, len(names), NODES_AT_ONCE):
        some = names[start : start + NODES_AT_ONCE]
        hours = _hours(cluster, reporting, some, end)
        nodes = [
            node
            for node in Node.objects.filter(cluster=cluster, name__in=some).with_gpus()
            if node.name in reported
            or node.name in long
            or hours.longest.get(node.name, 0) >= idle_hours_for(classes.get(node.pk, ()))
        ]
        allocated = allocations_on(nodes, now=now)
        for node in nodes:
            its = allocated[node.pk]
            uuids = [board.uuid or reporting.uuids.get((node.name, board.index), "") for board in its.boards]
            by: _Hours | _Minutes = hours
            if node.name in own:
                busy = reporting.busy(uuids, least=BELOW)
                by = _Minutes(own[node.name], times.get(node.name, {}), busy, now)
            looking = _IdleSearch(its, Layout.read(node.layout), uuids, by, reported.get(node.name, {}))
            if idle := looking.found():
                found[node.name] = idle
    return found


def is_due(cluster: Cluster, *, now: datetime) -> bool:
    """Returns whether this evaluation covers idle GPUs.

    Their hours end once an hour, and finding the allocations is expensive if many GPUs are idle (docs/figures.md).
    """
    return is_turn_of(IdleGpus.key, cluster, every=EVERY, now=now)


def _idle_times(cluster: Cluster) -> Mapping[str, Mapping[str, IdleTime]]:
    """Returns the idle time of boards by node name and UUID. Without Redis it is unknown, and reported GPUs stay so."""
    try:
        return idle_times(cluster.pk)
    except SnapshotsUnavailable as error:
        log.warning("idle time is unknown: Redis is away", cluster=cluster.name, reason=str(error))
        return {}


def _longest_s(times: Mapping[str, IdleTime]) -> float:
    return max((time.measured_s for time in times.values()), default=0)


def _reported_hours(cluster: Cluster) -> dict[str, ReportedIdleHours]:
    findings = Finding.objects.unresolved().filter(cluster=cluster, rule=IdleGpus.key, node__isnull=False)
    return {name: reported_hours_of(facts) for name, facts in findings.values_list("node__name", "facts")}


def _candidates(cluster: Cluster, end: datetime) -> set[str]:
    """Returns nodes with tenants' pods and a GPU that was idle for the shortest time that is reported."""
    fewest = min(all_idle_hours())
    holding = Pod.objects.filter(cluster=cluster, is_tenant=True, started_at__lte=end - fewest * HOUR).not_done()
    rows = GpuHour.objects.filter(IDLE, cluster=cluster, hour__gte=end - fewest * HOUR, hour__lt=end)
    rows = rows.filter(node_name__in=holding.order_by().values("node_name"))
    long = rows.order_by().values("node_name", "uuid", "gi_id").annotate(hours=Count("hour")).filter(hours=fewest)
    return set(long.values_list("node_name", flat=True))


def _hours(cluster: Cluster, reporting: ReportingNodes, names: Collection[str], end: datetime) -> _Hours:
    """Returns the idle hours. A board is idle while all its slices are, and works while one of them does."""
    counts = {f"of_{hours}": Count("hour", filter=IDLE & Q(hour__gte=end - hours * HOUR)) for hours in all_idle_hours()}
    lasts = {"was_idle": Max("hour", filter=IDLE), "was_busy": Max("hour", filter=BUSY)}
    since = end - max(all_idle_hours()) * HOUR
    rows = GpuHour.objects.filter(cluster=cluster, node_name__in=names, hour__gte=since, hour__lt=end)
    idle: dict[str, int] = {}
    longest: dict[str, int] = {}
    worked: set[str] = set()
    counted: Any = rows.order_by().values("node_name", "uuid", "gi_id").annotate(**counts, **lasts)
    for row in counted:
        name, uuid = row["node_name"], row["uuid"]
        hours = max((each for each in all_idle_hours() if row[f"of_{each}"] == each), default=0)
        idle[uuid] = min(hours, idle.get(uuid, hours))
        longest[name] = max(hours, longest.get(name, 0))
        if row["was_busy"] and not (row["was_idle"] and row["was_idle"] > row["was_busy"]):
            worked.add(uuid)
    return _Hours(idle, longest, worked, reporting.busy(idle, least=BELOW), end)


def _way_of_allocation(allocation: GpuAllocation, board: Board, layout: Layout) -> Way:
    """Returns how a pod uses a board. A board used by several pods is shared, whatever the resource's name says."""
    way = layout.way(allocation.resource)
    if allocation.profile and not way.profile:
        way = replace(way, profile=allocation.profile)
    pods = {one.pod.pk for one in board.allocations if not one.only_looks}
    return replace(way, sharing=UNKNOWN_SHARING) if way.kind is ResourceKind.WHOLE and len(pods) > 1 else way
