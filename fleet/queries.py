"""Reads over several models, for pages and REST alike. Each costs a fixed number of queries."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from django.db.models import Prefetch, QuerySet, prefetch_related_objects

from fleet.allocation.allocations import AllocatedGpu, Board, Unplaced
from fleet.allocation.amounts import offers_of
from fleet.allocation.cpu_memory import CpuMemory
from fleet.allocation.exporter_status import jobs_in_words, said_of_exporter
from fleet.allocation.gpu_holders import allocated_gpus, allocations_on
from fleet.allocation.tally import Alike, Tally, read_alike, tally
from fleet.drivers.owners import key_of, nodes_by_owner
from fleet.freshness.cluster import ClusterFreshness, cluster_freshness, heard_of
from fleet.freshness.kinds import NODES, PODS, Freshness, KindFreshness, never_heard
from fleet.models import (
    Bookmark,
    Cluster,
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

OF_ONE_NODE = ("labels", "annotations", "taints", "driver_daemon_set")  # columns that only its own page shows
LARGEST_INDEX = 9999  # of a GPU; a finding names none beyond


@dataclass(frozen=True)
class ClusterRow:
    cluster: Cluster
    freshness: ClusterFreshness
    bookmarks: list[Bookmark]
    alike: Sequence[Alike]  # what is counted of its nodes, known or not

    @cached_property
    def tally(self) -> Tally:
        return _as_heard(self.alike, self.freshness)

    @property
    def kinds(self) -> list[KindFreshness]:
        """Nodes and pods are always among them."""
        return list(self.freshness.by_kind.values())

    @property
    def seq(self) -> int:
        return self.cluster.batch

    @property
    def is_bad(self) -> bool:
        """Whether somebody should look: not seen, somebody else's, behind, or with kinds that are not read.

        A first list that is not complete is no trouble, while a worker is at it.
        """
        sight, cluster = self.freshness.sight, self.cluster
        is_unseen = not sight.is_live and (sight.unwatched_since or not self.freshness.is_loading)
        troubles = [kind for kind in self.freshness.troubles if kind.state is not Freshness.LOADING]
        return bool(is_unseen or cluster.foreign_uid or sight.behind_since or troubles)


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
        """When its cluster was last heard, where that is not now."""
        return None if self.freshness.is_fresh else self.freshness.heard_at


@dataclass(frozen=True)
class DatedRow:
    """A row as REST gives it, with how fresh its kind is in its cluster."""

    own_freshness: KindFreshness

    @property
    def seen_at(self) -> datetime | None:
        return self.own_freshness.heard_at

    @property
    def freshness(self) -> Freshness:
        return self.own_freshness.state


@dataclass(frozen=True)
class NodeRow(DatedRow):
    node: Node
    pods_freshness: KindFreshness

    @property
    def knows_pods(self) -> bool:
        """Whether pods were ever seen: else nobody knows what they took."""
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
        """What is allocated, by its unit, as the node's page has it: what is lost is missing, whoever has it."""
        return {offer.unit: offer.allocated for offer in offers_of(self.node, knows_pods=True)}

    @property
    def requested(self) -> Mapping[str, int] | None:
        return self.node.requested if self.knows_pods else None

    @property
    def physical_gpus(self) -> int | None:
        """None: a GPU node of which nobody says how many."""
        return self.node.physical_gpus if self.node.is_gpu_node else 0

    @property
    def gpus_missing(self) -> int | None:
        """None: a GPU node that never named any."""
        never_named = self.node.is_gpu_node and self.node.gpu_expected is None and not self.node.expected
        return None if never_named else self.node.gpus_missing

    @property
    def cpu_memory(self) -> CpuMemory:
        return CpuMemory.of(vars(self.node), knows_pods=self.knows_pods)


@dataclass(frozen=True)
class DriverObjectRow(DatedRow):
    driver_object: DriverObject
    nodes: int | None  # GPU nodes it moves; None: nodes were never seen


@dataclass(frozen=True)
class PodRow(DatedRow):
    pod: Pod
    reason: PodReason | None = None  # why it does not run; None: it does, or nothing is known


@dataclass(frozen=True)
class NodeInDetail(NodeRow):
    """Everything about one node, for its page and for REST."""

    heard: ClusterFreshness
    resources: Sequence[ResourceLine]
    gpus: Sequence[AllocatedGpu]
    boards: Sequence[Board]
    unplaced: Sequence[Unplaced]
    disagreements: Sequence[str]  # of its exporter, with what is believed, or with what Kubernetes knows of
    exporter: ExporterReading | None
    exporter_note: str
    pods: Sequence[Pod] | None  # None: pods were never seen


@dataclass(frozen=True)
class GpuInDetail(DatedRow):
    """Who has one GPU, and how fresh that is, for its page and for REST."""

    allocated: AllocatedGpu
    heard: ClusterFreshness
    pods_freshness: KindFreshness
    pools: QuerySet[Pool]  # those of its node that the person sees


@dataclass(frozen=True)
class NodeGone:
    row: GoneNode
    again: Node | None  # who has its name now


def see_clusters(clusters: Sequence[Cluster], *, user, now: datetime) -> list[ClusterRow]:
    """Three queries, of clusters with their observers. Counts only the nodes that the user may see."""
    keys = [cluster.pk for cluster in clusters]
    marks = _bookmarks(keys)
    alike: dict[int, list[Alike]] = defaultdict(list)
    for each in read_alike(user, clusters=keys):
        alike[each.cluster].append(each)
    return [see_cluster(cluster, marks[cluster.pk], alike[cluster.pk], now=now) for cluster in clusters]


def see_cluster(cluster: Cluster, bookmarks: list[Bookmark], alike: Sequence[Alike], *, now: datetime) -> ClusterRow:
    """One of what was read at one moment. Asks no database."""
    observer = getattr(cluster, "observer", None)
    heard = cluster_freshness(bookmarks, now=now, observer=observer, added_at=cluster.added_at)
    return ClusterRow(cluster, heard, bookmarks, alike)


def see_pools(pools: Sequence[Pool], *, user, now: datetime) -> list[PoolRow]:
    clusters = {pool.cluster_id for pool in pools}
    heard, alike = _heard_by_cluster(clusters, now=now), read_alike(user, clusters=clusters)
    return [see_pool(pool, alike, heard[pool.cluster_id]) for pool in pools]


def see_pool(pool: Pool, alike: Iterable[Alike], heard: ClusterFreshness) -> PoolRow:
    """The same of a pool."""
    return PoolRow(pool, heard, _as_heard([each for each in alike if pool.pk in each.pools], heard))


def see_nodes(nodes: Sequence[Node], *, now: datetime) -> list[NodeRow]:
    """One query. Load them with `for_rows`, or each row costs two more."""
    heard = _heard_by_cluster({node.cluster_id for node in nodes}, now=now)
    return [NodeRow(kinds[NODES], node, kinds[PODS]) for node in nodes for kinds in (heard[node.cluster_id].by_kind,)]


def pools_for(user) -> Prefetch:
    """Of each node the pools that the user sees: one that they do not see may share it with theirs."""
    return Prefetch("pools", Pool.objects.visible_to(user))


def seen_pools_of(node: Node, *, user) -> QuerySet[Pool]:
    """The same of one node, by name."""
    return Pool.objects.visible_to(user).filter(nodes=node).order_by("name")


def pools_named(user) -> list[str]:
    """Those that the user sees as selects name them: cluster/name."""
    seen = Pool.objects.visible_to(user).order_by("cluster__name", "name")
    return [f"{cluster}/{pool}" for cluster, pool in seen.values_list("cluster__name", "name")]


def nodes_for(user) -> QuerySet[Node]:
    """Those that the user sees, each with its cluster and who observes it, and pools. Asks once for their roles."""
    prefetch_related_objects([user], "bindings")
    return Node.objects.visible_to(user).select_related("cluster__observer").prefetch_related(pools_for(user))


def for_rows(nodes: QuerySet[Node], *, user) -> QuerySet[Node]:
    """With what a row of a list shows, and without what only the page of one node does. As the index has them."""
    nodes = nodes.select_related("cluster").prefetch_related(pools_for(user))
    return nodes.defer(*OF_ONE_NODE).order_by("cluster_id", "name")


def pool_names(nodes: Collection[int], pools: Iterable[Any]) -> dict[int, list[str]]:
    """By a node's key, the names of its pools among these: of many nodes without a row a pool. One query."""
    found: dict[int, list[str]] = {}
    through = Node.pools.through.objects.filter(node__in=nodes, pool__in=pools)
    for node_id, name in through.order_by("pool__name").values_list("node_id", "pool__name"):
        found.setdefault(node_id, []).append(name)
    return found


def see_node(node: Node, *, now: datetime) -> NodeInDetail:
    """Eight queries, of a node with its cluster; seven where what is heard of that was read with it."""
    heard = heard_of(node.cluster, now=now)
    pods = list(node.pods.select_related("cluster"))
    allocated = allocations_on([node], now=now)[node.pk]
    gpus = (allocated.of(gpu) for gpu in node.gpus.all())
    return NodeInDetail(
        node=node,
        own_freshness=heard.by_kind[NODES],
        pods_freshness=heard.by_kind[PODS],
        heard=heard,
        resources=lines_of(node, knows_pods=heard.knows_pods),
        gpus=[_as_known(gpu, knows_pods=heard.knows_pods) for gpu in gpus],
        boards=allocated.boards,
        unplaced=allocated.unplaced,
        disagreements=[*allocated.disagreements, *jobs_in_words(allocated)],
        exporter=allocated.exporter,
        exporter_note=said_of_exporter(node, allocated, ExporterRound.objects.filter(cluster=node.cluster_id).first()),
        pods=pods if heard.knows_pods else None,
    )


def see_gpu(gpu: Gpu, *, user, now: datetime) -> GpuInDetail:
    """Load it with its node and who observes the cluster. Two queries, and what `allocated_gpus` costs."""
    heard = heard_of(gpu.node.cluster, now=now)
    (allocated,) = allocated_gpus([gpu], now=now)
    return GpuInDetail(
        own_freshness=heard.by_kind[NODES],
        allocated=_as_known(allocated, knows_pods=heard.knows_pods),
        heard=heard,
        pods_freshness=heard.by_kind[PODS],
        pools=seen_pools_of(gpu.node, user=user),
    )


def see_gpus(gpus: Sequence[Gpu], *, now: datetime) -> list[AllocatedGpu]:
    """Load them with their nodes. One query, and what `allocated_gpus` costs."""
    heard = _heard_by_cluster({gpu.node.cluster_id for gpu in gpus}, now=now)
    return [
        _as_known(allocated, knows_pods=heard[allocated.gpu.node.cluster_id].knows_pods)
        for allocated in allocated_gpus(gpus, now=now)
    ]


def _as_known(allocated: AllocatedGpu, *, knows_pods: bool) -> AllocatedGpu:
    """Where pods were never read nobody knows who has it, which is not nobody."""
    return allocated if knows_pods else replace(allocated, allocations=None)


def lines_of(node: Node, *, knows_pods: bool = True) -> list[ResourceLine]:
    amounts = (node.expected, node.capacity, node.allocatable, node.requested if knows_pods else None)
    return resource_lines(*amounts, Layout.read(node.layout), is_reconfiguring=bool(node.reconfiguring))


class NodeLeft(Exception):
    """What was asked for is a node that left its cluster."""

    def __init__(self, gone: NodeGone) -> None:
        super().__init__(f"{gone.row.name} left {gone.row.cluster.name} at {to_the_second(gone.row.gone_at)}.")
        self.gone = gone


def node_gone(node_id: int, *, user) -> NodeGone | None:
    """None: there never was one, nobody remembers, or the user may not see it. Two queries."""
    row = GoneNode.objects.visible_to(user).select_related("cluster").filter(node_id=node_id).first()
    if row is None:
        return None
    again = Node.objects.visible_to(user).filter(cluster=row.cluster_id, name=row.name).first()
    return NodeGone(row, again)


def kept_node(node_id: int, *, user) -> Node | GoneNode | None:
    """Also one that left its cluster, for as long as timelines are kept. With its cluster; two queries at most."""
    there = Node.objects.visible_to(user).select_related("cluster").filter(pk=node_id).first()
    return there or GoneNode.objects.visible_to(user).select_related("cluster").filter(node_id=node_id).first()


def gpu_at(node_id: int, index: int, *, user) -> Gpu | None:
    """Its row; of a node that lists none of this index one that is not kept: somebody may name it all the same.

    None: the person sees no such node. Two queries at most.
    """
    row = Gpu.objects.visible_to(user).at(node_id, index).first()
    if row is not None or index > LARGEST_INDEX:
        return row
    node = Node.objects.visible_to(user).select_related("cluster__observer").filter(pk=node_id).first()
    return Gpu(node=node, index=index) if node else None


def timeline(node: Node | GoneNode) -> QuerySet[NodeEvent]:
    """The newest first. By the node's UID: a node that left and came back under its name is another one."""
    return NodeEvent.objects.filter(cluster=node.cluster_id, node_uid=node.uid)


def see_driver_objects(driver_objects: Sequence[DriverObject], *, now: datetime) -> list[DriverObjectRow]:
    """Four queries."""
    clusters = {each.cluster_id for each in driver_objects}
    kinds = {cluster: heard.by_kind for cluster, heard in _heard_by_cluster(clusters, now=now).items()}
    numbers = nodes_by_owner(clusters)
    return [
        DriverObjectRow(
            _of_object(each, kinds[each.cluster_id]),
            each,
            numbers.get(key_of(each), 0) if kinds[each.cluster_id][NODES].is_known else None,
        )
        for each in driver_objects
    ]


def _of_object(driver_object: DriverObject, kinds: Mapping[str, KindFreshness]) -> KindFreshness:
    kind = KIND_OF_OBJECT.get(driver_object.kind, driver_object.kind)
    return kinds.get(kind) or never_heard(kind)


def see_pods(pods: Sequence[Pod], *, now: datetime) -> list[PodRow]:
    """One query, and a few for those that do not run."""
    heard = _heard_by_cluster({pod.cluster_id for pod in pods}, now=now)
    reasons = reasons_of(pods, now=now)
    return [PodRow(heard[pod.cluster_id].by_kind[PODS], pod, reasons.get(pod.uid)) for pod in pods]


def unread_of(cluster: Cluster) -> list[dict[str, str]]:
    """Kind, name and why, of the objects that cannot be read. One query."""
    marks = Bookmark.objects.filter(cluster=cluster).exclude(unread={}).order_by("kind")
    return [{"kind": mark.kind, **said} for mark in marks for said in mark.unread.values()]


def matching(cluster: Cluster, selector: str) -> list[Node]:
    """The nodes of a cluster that a pool with this selector would have.

    :raises BadSelector: naming the part that cannot be read
    """
    nodes = Node.objects.filter(labelled(selectors.parse(selector)), cluster=cluster)
    return list(nodes.only("pk", "name", "cluster_id"))


def _heard_by_cluster(cluster_ids: Collection[int], *, now: datetime) -> dict[int, ClusterFreshness]:
    """What is heard of each, not who listens."""
    found = _bookmarks(cluster_ids)
    return {cluster_id: cluster_freshness(found[cluster_id], now=now) for cluster_id in cluster_ids}


def _bookmarks(cluster_ids: Collection[int]) -> dict[int, list[Bookmark]]:
    found: dict[int, list[Bookmark]] = defaultdict(list)
    for bookmark in Bookmark.objects.filter(cluster__in=set(cluster_ids)):
        found[bookmark.cluster_id].append(bookmark)
    return found


def _as_heard(alike: Sequence[Alike], heard: ClusterFreshness) -> Tally:
    return tally(alike).as_known(nodes=heard.by_kind[NODES].is_known, pods=heard.knows_pods)
