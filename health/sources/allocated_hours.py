"""The allocation of a cluster's GPUs in an hour, from the placements of pods: the duration, and the longest holder."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain

from django.db.models import Q

from fleet.allocation.gpu_holders import GpusOfPod, gpus_of_pods
from fleet.freshness.cluster import why_unseen
from fleet.freshness.kinds import PODS
from fleet.models import Gpu, Node, PodPlacement
from gpu.resources import Layout, whole_gpus
from health.telemetry.snapshot import GpuDevice

HOUR = timedelta(hours=1)
NODES_AT_ONCE = 200
ALONE_FOR_S = 0.9 * HOUR.total_seconds()  # as much of an hour as its telemetry must cover
NO_LAYOUT = Layout.read("")
NO_GPUS = GpusOfPod([], [])
DeviceOfNode = tuple[str, int, str]  # the node's name, the index of the board there, its slice's number; blank: all
FromUntil = tuple[datetime, datetime]


@dataclass(frozen=True)
class AllocatedFor:
    seconds: float | None = None  # None: nothing tells
    namespace: str = ""  # of the pods that used it longest; if equal, the first by name
    workload: str = ""  # topmost owner in that namespace, as `JobSet/train`; blank: its pod has no controller


@dataclass(frozen=True)
class HeldInHour:
    """A placement in the hour, as long as anybody saw it."""

    row: PodPlacement
    since: datetime
    until: datetime
    gpus: GpusOfPod
    is_seen: bool  # False: it was last seen before the hour


@dataclass
class AllocatedHour:
    is_seen: bool  # whether pods of its cluster are seen
    held: Mapping[str, Sequence[HeldInHour]] = field(default_factory=dict)  # by node
    spans: Mapping[DeviceOfNode, Collection[tuple[PodPlacement, FromUntil]]] = field(default_factory=dict)
    # Nodes where a pod had GPUs, and nothing tells which, or not of all of them, or whether it had; and slices.
    unplaced: Collection[str] = frozenset()
    unsliced: Collection[str] = frozenset()
    uuids: Mapping[str, Mapping[int, str]] = field(default_factory=dict)  # by node and index

    @classmethod
    def of(cls, cluster_id: int, hour: datetime, *, now: datetime) -> "AllocatedHour":
        """Loads the hour with two queries; three more for every 200 nodes with allocated GPUs, and those of
        `allocations_on`."""
        if why_unseen(cluster_id, PODS, now=now):
            return cls(is_seen=False)
        end = hour + HOUR
        lasting = Q(until=None) | Q(until__gt=hour)
        rows = list(PodPlacement.objects.filter(lasting, cluster=cluster_id, since__lt=end).order_by())
        names = {row.node_name for row in rows}
        layouts, uuids = _layouts(cluster_id, names), _uuids(cluster_id, names)
        gpus = _gpus_now(cluster_id, {row.node_name for row in rows if row.until is None}, now=now)
        held: dict[str, list[HeldInHour]] = defaultdict(list)
        spans: dict[DeviceOfNode, list[tuple[PodPlacement, FromUntil]]] = defaultdict(list)
        unplaced, unsliced = set(), set()
        for row in rows:
            layout = layouts.get(row.node_name, NO_LAYOUT)
            since, until = (
                max(row.since, hour),
                min(row.seen_until or row.until or end, end),
            )  # as long as anybody knows
            its = GpusOfPod(row.boards, row.slices) if row.until is not None else gpus.get(row.pod_uid, NO_GPUS)
            is_unseen = row.seen_until is not None and until <= since  # in this hour
            if not is_unseen and until <= since:
                continue
            whole = (max(row.since, hour), min(row.until or end, end)) if is_unseen else (since, until)
            held[row.node_name].append(HeldInHour(row, *whole, its, is_seen=not is_unseen))
            if is_unseen or not its.indices or len(its.indices) < whole_gpus(row.resources, layout):
                unplaced.add(row.node_name)
            slices = _slices_of(row.resources, layout)
            if slices and (is_unseen or len(its.slices) < slices):
                unsliced.add(row.node_name)
            if not is_unseen:
                for index, number in [*((index, "") for index in its.indices), *its.slices]:
                    spans[row.node_name, index, number].append((row, (since, until)))
        return cls(is_seen=True, held=held, spans=spans, unplaced=unplaced, unsliced=unsliced, uuids=uuids)

    def by(self, device: GpuDevice) -> AllocatedFor:
        """Returns the allocation of a board or any part of it, or of one slice."""
        index = self.index_of(device)
        if not self.is_seen or index is None:
            return AllocatedFor()
        those = self.spans.get((device.node_name, index, device.gi_id), ())
        seconds = length_of(span for _, span in those)
        untold = self.unsliced if device.gi_id else self.unplaced
        if device.node_name in untold and seconds < HOUR.total_seconds():
            return AllocatedFor()  # another pod may have had it for the rest of the hour
        if not those:
            return AllocatedFor(0.0)
        by_namespace: dict[str, float] = defaultdict(float)
        by_workload: dict[tuple[str, str], float] = defaultdict(float)
        for row, (since, until) in those:
            lasted = (until - since).total_seconds()
            by_namespace[row.namespace] += lasted
            by_workload[row.namespace, row.workload] += lasted
        namespace = _longest(by_namespace)
        workload = _longest({name: lasted for (of, name), lasted in by_workload.items() if of == namespace})
        return AllocatedFor(seconds, namespace, workload)

    def only_owner_of(self, device: GpuDevice) -> tuple[str, str] | None:
        """Returns namespace and topmost owner that had a board or slice alone for the whole hour. None: nobody did.

        A pod without a controller is its namespace's.
        """
        index = self.index_of(device)
        if not self.is_seen or index is None:
            return None
        those = self.spans.get((device.node_name, index, device.gi_id), ())
        owners = {(row.namespace, row.workload) for row, _ in those}
        lasted = length_of(span for _, span in those)
        is_alone = sum((until - since).total_seconds() for _, (since, until) in those) <= lasted + 1
        return owners.pop() if len(owners) == 1 and is_alone and lasted >= ALONE_FOR_S else None

    def index_of(self, device: GpuDevice) -> int | None:
        """Returns the index of the board; None if unknown.

        It goes by UUID, and by the exporter's index only if one of the two has no UUID.
        """
        uuids = self.uuids.get(device.node_name, {})
        named = next((index for index, uuid in uuids.items() if uuid == device.uuid), None)
        if named is not None:
            return named
        return device.index if not device.uuid or device.index not in uuids else None


def _longest(lasted: Mapping[str, float]) -> str:
    return min(lasted, key=lambda name: (-lasted[name], name))


def length_of(spans: Iterable[FromUntil]) -> float:
    """Returns the total length in seconds; overlaps count once."""
    total, reached = timedelta(), None
    for since, until in sorted(spans):
        begun = since if reached is None else max(since, reached)
        total += max(timedelta(), until - begun)
        reached = until if reached is None else max(reached, until)
    return total.total_seconds()


def _slices_of(resources: Mapping[str, int], layout: Layout) -> int:
    """Returns the minimum number of slices. A pod without GPU resources has at least one from a claim."""
    ways = [(layout.way(name), number) for name, number in resources.items()]
    return sum(1 if way.sharing else number for way, number in ways if way.profile) if ways else 1


def _layouts(cluster_id: int, names: Collection[str]) -> Mapping[str, Layout]:
    nodes = Node.objects.filter(cluster=cluster_id)
    rows = (nodes.filter(name__in=some).order_by().values_list("name", "layout") for some in _batches_of(names))
    return {name: Layout.read(layout) for name, layout in chain.from_iterable(rows)}


def _uuids(cluster_id: int, names: Collection[str]) -> Mapping[str, Mapping[int, str]]:
    found: dict[str, dict[int, str]] = defaultdict(dict)
    gpus = Gpu.objects.filter(node__cluster=cluster_id).exclude(uuid="")
    for some in _batches_of(names):
        rows = gpus.filter(node__name__in=some).order_by().values_list("node__name", "index", "uuid")
        for name, index, uuid in rows:
            found[name][index] = uuid
    return found


def _batches_of(names: Collection[str]) -> Iterator[Sequence[str]]:
    wanted = sorted(names)
    return (wanted[first : first + NODES_AT_ONCE] for first in range(0, len(wanted), NODES_AT_ONCE))


def _gpus_now(cluster_id: int, names: Collection[str], *, now: datetime) -> Mapping[str, GpusOfPod]:
    found: dict[str, GpusOfPod] = {}
    for some in _batches_of(names):
        nodes = Node.objects.filter(cluster=cluster_id, name__in=some)
        found |= gpus_of_pods(list(nodes.defer("labels", "annotations", "taints")), now=now)
    return found
