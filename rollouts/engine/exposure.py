"""The GPU time that tenants used on changed nodes, from rows; never more than was observed.

A Ready pod counts since it became Ready; time before a restart is unknown. Of ended pods only completed ones count,
from the time their node accepted them: nothing records whether a failed or deleted pod ran. Slices, shares and claims
of a node count as one GPU together. Where telemetry reports busy GPUs, an hour counts once it is complete, and only the
busy part.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import accumulate, pairwise
from types import MappingProxyType
from typing import NamedTuple

from fleet.models import Node, Pod, PodPlacement
from fleet.models.pod import COMPLETED
from gpu.resources import Layout, whole_gpus
from health.models import GpuHour
from rollouts.gates.base import SeenWork

HOUR = timedelta(hours=1)
NEVER: Mapping[str, datetime] = MappingProxyType({})
Busy = Mapping[datetime, Mapping[str, float]]  # by the beginning of the hour and the GPU's UUID: seconds under load


class Allocated(NamedTuple):
    since: datetime
    until: datetime
    gpus: int  # whole GPUs; 0: slices, shares or GPUs by a claim


class ClusterClock(NamedTuple):
    """The time to which the rows of a cluster are current, by our clock."""

    seen_at: datetime
    ahead: timedelta  # how far the cluster's clock is ahead of ours

    def at_the_latest(self, at: datetime) -> datetime:
        """Returns the latest time by our clock, if either clock may have set `at`."""
        return max(at, at - self.ahead)


def read_work(
    cluster_id: int, changed: Mapping[str, datetime], nodes: Mapping[str, Node], pods: Mapping[str, Sequence[Pod]],
    clock: ClusterClock, driver_since: Mapping[str, datetime] = NEVER,
) -> dict[str, SeenWork]:  # fmt: skip
    """Returns the work on present nodes by node UID. Two queries; none without nodes.

    `changed` is when each node was seen changed, and `driver_since` when its new driver began; `pods` is by node name.
    A pod that stayed through the change has not begun with the new driver, and does not count.
    """
    there = {uid: nodes[uid] for uid in changed if uid in nodes}
    if not there:
        return {}
    first = min(changed[uid] for uid in there)
    over, busy = (
        _placements_since(cluster_id, there, first),
        _busy_hours(cluster_id, [node.name for node in there.values()], first),
    )
    found = {}
    for uid, node in there.items():
        layout = Layout.read(node.layout)
        of_node = [*_running(pods.get(node.name, ()), layout, clock), *_completed(over.get(uid, ()), layout, clock)]
        spans = [span for span in of_node if uid not in driver_since or span.since >= driver_since[uid]]
        gpus = max(node.physical_gpus or 0, whole_gpus(node.allocatable, layout))
        busy_hours = busy.get(node.name)
        found[uid] = SeenWork(
            gpu_time=gpu_time(spans, gpus=gpus, since=changed[uid], until=clock.seen_at, busy=busy_hours),
            has_telemetry=busy_hours is not None,
        )
    return found


def gpu_time(
    spans: Collection[Allocated], *, gpus: int, since: datetime, until: datetime, busy: Busy | None = None
) -> timedelta:
    """Returns the GPU time of one node between two moments. `busy` is None without telemetry."""
    if busy is None:
        return _allocated(spans, gpus=gpus, since=since, until=until)
    total = timedelta()
    for hour, of_hour in busy.items():
        begun = max(hour, since)
        end = min(hour + HOUR, until)
        before = (begun - hour).total_seconds()  # all of it may be from before the change
        worked = timedelta(seconds=sum(max(0.0, seconds - before) for seconds in of_hour.values()))
        total += min(worked, _allocated(spans, gpus=gpus, since=begun, until=end))
    return total


def _allocated(spans: Iterable[Allocated], *, gpus: int, since: datetime, until: datetime) -> timedelta:
    more: dict[datetime, tuple[int, int]] = defaultdict(lambda: (0, 0))  # whole ones, and pods with parts
    for span in spans:
        begun, end = max(span.since, since), min(span.until, until)
        if begun < end:
            of = (span.gpus, 0) if span.gpus else (0, 1)
            for at, sign in ((begun, 1), (end, -1)):
                more[at] = (more[at][0] + sign * of[0], more[at][1] + sign * of[1])
    moments = sorted(more)
    at_once = accumulate((more[at] for at in moments), lambda one, other: (one[0] + other[0], one[1] + other[1]))
    return sum(
        (
            min(gpus, whole + (parts > 0)) * (end - begun)
            for (begun, end), (whole, parts) in zip(pairwise(moments), at_once, strict=False)
        ),
        timedelta(),
    )


def _running(pods: Iterable[Pod], layout: Layout, clock: ClusterClock) -> Iterator[Allocated]:
    for pod in pods:
        if pod.is_tenant and pod.is_ready and pod.ready_since is not None:
            begun = clock.at_the_latest(max(pod.ready_since, pod.started_at or pod.created_at))
            yield Allocated(begun, clock.seen_at, whole_gpus(pod.resources, layout))


def _completed(rows: Iterable[PodPlacement], layout: Layout, clock: ClusterClock) -> Iterator[Allocated]:
    for row in rows:
        if until := row.seen_until or row.until:
            yield Allocated(clock.at_the_latest(row.since), until, whole_gpus(row.resources, layout))


def _placements_since(cluster_id: int, uids: Collection[str], first: datetime) -> Mapping[str, Sequence[PodPlacement]]:
    rows = PodPlacement.objects.filter(cluster=cluster_id, node_uid__in=uids, until__gt=first, ended__in=COMPLETED)
    found: dict[str, list[PodPlacement]] = defaultdict(list)
    for row in rows.only("node_uid", "resources", "since", "until", "seen_until").order_by():
        found[row.node_uid].append(row)
    return found


def _busy_hours(cluster_id: int, names: Collection[str], first: datetime) -> Mapping[str, Busy]:
    """Returns busy hours by node name, for nodes that reported since the hour before `first`.

    A GPU in parts counts as its busiest part, since nothing tells whether the parts were busy at the same time.
    """
    since = first.replace(minute=0, second=0, microsecond=0) - HOUR
    rows = GpuHour.objects.filter(cluster=cluster_id, node_name__in=names, hour__gte=since, busy_s__isnull=False)
    found: dict[str, dict[datetime, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for name, hour, uuid, busy_s in rows.order_by().values_list("node_name", "hour", "uuid", "busy_s"):
        of_hour = found[name][hour]
        of_hour[uuid] = max(of_hour.get(uuid, 0.0), busy_s or 0.0)
    return found
