"""Reads over several models for pages and REST, each with a fixed number of queries."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from django.db.models import Prefetch, QuerySet, prefetch_related_objects

from fleet.allocation.allocations import AllocatedGpu, Board, Unplaced
from fleet.allocation.amounts import offers_of
from fleet.allocation.cpu_memory import CpuMemory
from fleet.allocation.exporter_status import exporter_note_of, jobs_in_words
from fleet.allocation.gpu_holders import allocated_gpus, allocations_on
from fleet.allocation.tally import Alike, Tally, read_alike, tally
from fleet.drivers.owners import key_of, nodes_by_owner
from fleet.freshness.cluster import ClusterFreshness, cluster_freshness, load_cluster_freshness
from fleet.freshness.kinds import NODES, PODS, Freshness, KindFreshness, never_listed
from fleet.models import (
    Bookmark,
    Cluster,
    ClusterEvent,
    DriverObject,
    ExporterReading,
    ExporterRound,
    GoneNode,
    Gpu,
    Node,
    NodeEvent,
    Pod,
    Pool,
)
from fleet.models.kinds import KIND_OF_OBJECT
from fleet.pod_reasons import PodReason, reasons_of
from fleet.segments.label_conditions import labelled
from gpu.resources import Layout, ResourceLine, resource_lines
from kube import selectors
from wording.instants import to_the_second

OF_ONE_NODE = ("labels", "annotations", "taints", "driver_daemon_set")  # columns of its own page only
WARNINGS_FOR, WARNINGS_AT_MOST = timedelta(hours=1), 5  # Events of a node
LARGEST_INDEX = 9999  # highest index of a GPU in a finding


@dataclass(frozen=True)
class ClusterRow:
    cluster: Cluster
    freshness: ClusterFreshness
    bookmarks: list[Bookmark]
    alike: Sequence[Alike]  # the counted nodes, even if not all are known

    @cached_property
    def tally(self) -> Tally:
        return _tally_of_known(self.alike, self.freshness)

    @property
    def kinds(self) -> list[KindFreshness]:
        """Returns the kinds; nodes and pods are always included."""
        return list(self.freshness.by_kind.values())

    @property
    def seq(self) -> int:
        return self.cluster.batch

    @property
    def is_bad(self) -> bool:
        """Tells whether a person should act: unseen, replaced, behind, or with unreadable kinds.

        An incomplete first list is normal while a worker is at it.
        """
        observation, cluster = self.freshness.observation, self.cluster
        is_unseen = not observation.is_live and (observation.unwatched_since or not self.freshness.is_loading)
        troubles = [kind for kind in self.freshness.troubles if kind.state is not Freshness.LOADING]
        return bool(is_unseen or cluster.foreign_uid or observation.behind_since or troubles)


@dataclass(frozen=True)
class PoolRow:
    pool: Pool
    freshness: ClusterFreshness
    tally: Tally

    @property
    def nodes_freshness(self) -> KindFreshness:
        return self.freshness.by_kind[NODES]

    @property
    def as_of(self) -> datetime | None:
        """Returns the last update of the cluster, unless it is live."""
        return None if self.freshness.is_fresh else self.freshness.last_seen_at


@dataclass(frozen=True)
class DatedRow:
    own_freshness: KindFreshness

    @property
    def seen_at(self) -> datetime | None:
        return self.own_freshness.last_seen_at

    @property
    def freshness(self) -> Freshness:
        return self.own_freshness.state


@dataclass(frozen=True)
class NodeRow(DatedRow):
    node: Node
    pods_freshness: KindFreshness

    @property
    def knows_pods(self) -> bool:
        """Tells whether pods were ever read; otherwise their GPUs are unknown."""
        return self.pods_freshness.is_known

    @property
    def gpu_allocated(self) -> int | None:
        return self._allocated("")

    @property
    def slices_allocated(self) -> int | None:
        return self._allocated("slices")

    @property
    def shares_allocated(self) -> int | None:
        return self._allocated("shares")

    def _allocated(self, unit: str) -> int | None:
        return self._offered.get(unit, 0) if self.knows_pods else None

    @cached_property
    def _offered(self) -> Mapping[str, int | None]:
        """Returns the allocated amounts by unit, as on the node's page; lost units count as missing."""
        return {offer.unit: offer.allocated for offer in offers_of(self.node, knows_pods=True)}

    @property
    def requested(self) -> Mapping[str, int] | None:
        return self.node.requested if self.knows_pods else None

    @property
    def physical_gpus(self) -> int | None:
        """Returns the physical GPUs. None: unknown for a GPU node."""
        return self.node.physical_gpus if self.node.is_gpu_node else 0

    @property
    def gpus_missing(self) -> int | None:
        """Returns the missing units. None: a GPU node that never reported any."""
        never_named = self.node.is_gpu_node and self.node.gpu_expected is None and not self.node.expected
        return None if never_named else self.node.gpus_missing

    @property
    def cpu_memory(self) -> CpuMemory:
        return CpuMemory.of(vars(self.node), knows_pods=self.knows_pods)


@dataclass(frozen=True)
class DriverObjectRow(DatedRow):
    driver_object: DriverObject
    nodes: int | None  # GPU nodes it controls; None: nodes were never read


@dataclass(frozen=True)
class PodRow(DatedRow):
    pod: Pod
    reason: PodReason | None = None  # why it does not run; None: it runs, or unknown


@dataclass(frozen=True)
class NodeInDetail(NodeRow):
    cluster_freshness: ClusterFreshness
    resources: Sequence[ResourceLine]
    gpus: Sequence[AllocatedGpu]
    boards: Sequence[Board]
    unplaced: Sequence[Unplaced]
    disagreements: Sequence[str]  # between its exporter and other sources
    exporter: ExporterReading | None
    exporter_note: str
    pods: Sequence[Pod] | None  # None: pods were never read


@dataclass(frozen=True)
class GpuInDetail(DatedRow):
    """The users of one GPU with their freshness, for its page and REST."""

    allocated: AllocatedGpu
    cluster_freshness: ClusterFreshness
    pods_freshness: KindFreshness
    pools: QuerySet[Pool]  # visible pools of its node


@dataclass(frozen=True)
class NodeGone:
    row: GoneNode
    again: Node | None  # the node that has its name now


def see_clusters(clusters: Sequence[Cluster], *, user, now: datetime) -> list[ClusterRow]:
    """Returns rows of clusters with loaded observers. Counts only visible nodes. Three queries."""
    keys = [cluster.pk for cluster in clusters]
    marks = _bookmarks(keys)
    alike: dict[int, list[Alike]] = defaultdict(list)
    for each in read_alike(user, clusters=keys):
        alike[each.cluster].append(each)
    return [see_cluster(cluster, marks[cluster.pk], alike[cluster.pk], now=now) for cluster in clusters]


def see_cluster(cluster: Cluster, bookmarks: list[Bookmark], alike: Sequence[Alike], *, now: datetime) -> ClusterRow:
    """Builds a row from loaded data. Makes no query."""
    observer = getattr(cluster, "observer", None)
    freshness = cluster_freshness(bookmarks, now=now, observer=observer, added_at=cluster.added_at)
    return ClusterRow(cluster, freshness, bookmarks, alike)


def see_pools(pools: Sequence[Pool], *, user, now: datetime) -> list[PoolRow]:
    clusters = {pool.cluster_id for pool in pools}
    freshness, alike = _freshness_by_cluster(clusters, now=now), read_alike(user, clusters=clusters)
    return [see_pool(pool, alike, freshness[pool.cluster_id]) for pool in pools]


def see_pool(pool: Pool, alike: Iterable[Alike], freshness: ClusterFreshness) -> PoolRow:
    return PoolRow(pool, freshness, _tally_of_known([each for each in alike if pool.pk in each.pools], freshness))


def see_nodes(nodes: Sequence[Node], *, now: datetime) -> list[NodeRow]:
    """Returns rows of nodes. One query; load the nodes with `for_rows`, or each row costs two more."""
    freshness = _freshness_by_cluster({node.cluster_id for node in nodes}, now=now)
    return [
        NodeRow(kinds[NODES], node, kinds[PODS]) for node in nodes for kinds in (freshness[node.cluster_id].by_kind,)
    ]


def pools_for(user) -> Prefetch:
    """Prefetches the visible pools of nodes."""
    return Prefetch("pools", Pool.objects.visible_to(user))


def seen_pools_of(node: Node, *, user) -> QuerySet[Pool]:
    """Returns the visible pools of one node by name."""
    return Pool.objects.visible_to(user).filter(nodes=node).order_by("name")


def pools_named(user) -> list[str]:
    """Returns the visible pools as cluster/name."""
    seen = Pool.objects.visible_to(user).order_by("cluster__name", "name")
    return [f"{cluster}/{pool}" for cluster, pool in seen.values_list("cluster__name", "name")]


def nodes_for(user) -> QuerySet[Node]:
    """Returns the visible nodes with cluster, observer and pools. Loads the user's roles once."""
    prefetch_related_objects([user], "bindings")
    return Node.objects.visible_to(user).select_related("cluster__observer").prefetch_related(pools_for(user))


def for_rows(nodes: QuerySet[Node], *, user) -> QuerySet[Node]:
    """Loads what list rows show, ordered as the index is."""
    nodes = nodes.select_related("cluster").prefetch_related(pools_for(user))
    return nodes.defer(*OF_ONE_NODE).order_by("cluster_id", "name")


def pool_names(nodes: Collection[int], pools: Iterable[Any]) -> dict[int, list[str]]:
    """Returns pool names by node key, for many nodes. One query."""
    found: dict[int, list[str]] = {}
    through = Node.pools.through.objects.filter(node__in=nodes, pool__in=pools)
    for node_id, name in through.order_by("pool__name").values_list("node_id", "pool__name"):
        found.setdefault(node_id, []).append(name)
    return found


def see_node(node: Node, *, now: datetime) -> NodeInDetail:
    """Returns the details of a node with loaded cluster. Seven or eight queries."""
    freshness = load_cluster_freshness(node.cluster, now=now)
    pods = list(node.pods.select_related("cluster"))
    allocated = allocations_on([node], now=now)[node.pk]
    gpus = (allocated.of(gpu) for gpu in node.gpus.all())
    return NodeInDetail(
        node=node,
        own_freshness=freshness.by_kind[NODES],
        pods_freshness=freshness.by_kind[PODS],
        cluster_freshness=freshness,
        resources=lines_of(node, knows_pods=freshness.knows_pods),
        gpus=[_without_unknown_pods(gpu, knows_pods=freshness.knows_pods) for gpu in gpus],
        boards=allocated.boards,
        unplaced=allocated.unplaced,
        disagreements=[*allocated.disagreements, *jobs_in_words(allocated)],
        exporter=allocated.exporter,
        exporter_note=exporter_note_of(node, allocated, ExporterRound.objects.filter(cluster=node.cluster_id).first()),
        pods=pods if freshness.knows_pods else None,
    )


def warnings_of(node: Node, *, now: datetime) -> QuerySet[ClusterEvent]:
    """Returns the newest Events of the last hour that report trouble of the node. One query."""
    events = ClusterEvent.objects.filter(cluster=node.cluster_id, about_kind="Node", about_name=node.name)
    return events.filter(is_warning=True, last_at__gte=now - WARNINGS_FOR)[:WARNINGS_AT_MOST]


def see_gpu(gpu: Gpu, *, user, now: datetime) -> GpuInDetail:
    """Returns the details of a GPU. Load it with node and observer. Two queries, and those of `allocated_gpus`."""
    freshness = load_cluster_freshness(gpu.node.cluster, now=now)
    (allocated,) = allocated_gpus([gpu], now=now)
    return GpuInDetail(
        own_freshness=freshness.by_kind[NODES],
        allocated=_without_unknown_pods(allocated, knows_pods=freshness.knows_pods),
        cluster_freshness=freshness,
        pods_freshness=freshness.by_kind[PODS],
        pools=seen_pools_of(gpu.node, user=user),
    )


def see_gpus(gpus: Sequence[Gpu], *, now: datetime) -> list[AllocatedGpu]:
    """Returns GPUs with allocations. Load them with their nodes. One query, and those of `allocated_gpus`."""
    freshness = _freshness_by_cluster({gpu.node.cluster_id for gpu in gpus}, now=now)
    return [
        _without_unknown_pods(allocated, knows_pods=freshness[allocated.gpu.node.cluster_id].knows_pods)
        for allocated in allocated_gpus(gpus, now=now)
    ]


def _without_unknown_pods(allocated: AllocatedGpu, *, knows_pods: bool) -> AllocatedGpu:
    """Replaces allocations by None if pods were never read: unknown is not unallocated."""
    return allocated if knows_pods else replace(allocated, allocations=None)


def lines_of(node: Node, *, knows_pods: bool = True) -> list[ResourceLine]:
    amounts = (node.expected, node.capacity, node.allocatable, node.requested if knows_pods else None)
    return resource_lines(*amounts, Layout.read(node.layout), is_reconfiguring=bool(node.reconfiguring))


class NodeLeft(Exception):
    def __init__(self, gone: NodeGone) -> None:
        super().__init__(f"{gone.row.name} left {gone.row.cluster.name} at {to_the_second(gone.row.gone_at)}.")
        self.gone = gone


def node_gone(node_id: int, *, user) -> NodeGone | None:
    """Returns the removed node. None: unknown or invisible. Two queries."""
    row = GoneNode.objects.visible_to(user).select_related("cluster").filter(node_id=node_id).first()
    if row is None:
        return None
    again = Node.objects.visible_to(user).filter(cluster=row.cluster_id, name=row.name).first()
    return NodeGone(row, again)


def kept_node(node_id: int, *, user) -> Node | GoneNode | None:
    """Returns a node with its cluster, even after it left, while its timeline is stored. At most two queries."""
    there = Node.objects.visible_to(user).select_related("cluster").filter(pk=node_id).first()
    return there or GoneNode.objects.visible_to(user).select_related("cluster").filter(node_id=node_id).first()


def gpu_at(node_id: int, index: int, *, user) -> Gpu | None:
    """Returns the GPU's row, or an unsaved one for an index that the node does not list.

    None: the node is invisible. At most two queries.
    """
    row = Gpu.objects.visible_to(user).at(node_id, index).first()
    if row is not None or index > LARGEST_INDEX:
        return row
    node = Node.objects.visible_to(user).select_related("cluster__observer").filter(pk=node_id).first()
    return Gpu(node=node, index=index) if node else None


def timeline(node: Node | GoneNode) -> QuerySet[NodeEvent]:
    """Returns the timeline, newest first, by UID: a recreated node of the same name is another one."""
    return NodeEvent.objects.filter(cluster=node.cluster_id, node_uid=node.uid)


def see_driver_objects(driver_objects: Sequence[DriverObject], *, now: datetime) -> list[DriverObjectRow]:
    """Returns rows of driver objects. Four queries."""
    clusters = {each.cluster_id for each in driver_objects}
    kinds = {cluster: freshness.by_kind for cluster, freshness in _freshness_by_cluster(clusters, now=now).items()}
    numbers = nodes_by_owner(clusters)
    return [
        DriverObjectRow(
            _freshness_of_object(each, kinds[each.cluster_id]),
            each,
            numbers.get(key_of(each), 0) if kinds[each.cluster_id][NODES].is_known else None,
        )
        for each in driver_objects
    ]


def _freshness_of_object(driver_object: DriverObject, kinds: Mapping[str, KindFreshness]) -> KindFreshness:
    kind = KIND_OF_OBJECT.get(driver_object.kind, driver_object.kind)
    return kinds.get(kind) or never_listed(kind)


def see_pods(pods: Sequence[Pod], *, now: datetime) -> list[PodRow]:
    """Returns rows of pods. One query, and a few for pods that do not run."""
    freshness = _freshness_by_cluster({pod.cluster_id for pod in pods}, now=now)
    reasons = reasons_of(pods, now=now)
    return [PodRow(freshness[pod.cluster_id].by_kind[PODS], pod, reasons.get(pod.uid)) for pod in pods]


def unread_of(cluster: Cluster) -> list[dict[str, str]]:
    """Returns kind, name and reason of unreadable objects. One query."""
    marks = Bookmark.objects.filter(cluster=cluster).exclude(unread={}).order_by("kind")
    return [{"kind": mark.kind, **said} for mark in marks for said in mark.unread.values()]


def matching(cluster: Cluster, selector: str) -> list[Node]:
    """Returns the nodes of a pool with this selector.

    :raises BadSelector: with the part that cannot be parsed
    """
    nodes = Node.objects.filter(labelled(selectors.parse(selector)), cluster=cluster)
    return list(nodes.only("pk", "name", "cluster_id"))


def _freshness_by_cluster(cluster_ids: Collection[int], *, now: datetime) -> dict[int, ClusterFreshness]:
    """Returns the freshness by cluster, without observers."""
    found = _bookmarks(cluster_ids)
    return {cluster_id: cluster_freshness(found[cluster_id], now=now) for cluster_id in cluster_ids}


def _bookmarks(cluster_ids: Collection[int]) -> dict[int, list[Bookmark]]:
    found: dict[int, list[Bookmark]] = defaultdict(list)
    for bookmark in Bookmark.objects.filter(cluster__in=set(cluster_ids)):
        found[bookmark.cluster_id].append(bookmark)
    return found


def _tally_of_known(alike: Sequence[Alike], freshness: ClusterFreshness) -> Tally:
    return tally(alike).as_known(nodes=freshness.by_kind[NODES].is_known, pods=freshness.knows_pods)
