"""The one line above the fleet, and what each of its pools and clusters comes to. A fixed number of queries each."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Count, Q, QuerySet
from django.db.models.functions import Coalesce

from fleet.allocation.amounts import AMOUNT_SUMS, GpuAmount
from fleet.allocation.physical import PHYSICAL_SUMS, Physical
from fleet.models import Bookmark, Cluster, Node, Pool
from fleet.node_state import FAULTS, NodeState
from fleet.segments.facets import number_of_pools
from fleet.web import freshness

NODE_SUMS = {
    "nodes": Count("pk"),
    "held": Count("pk", filter=Q(is_held=True)),
    **PHYSICAL_SUMS,
    **AMOUNT_SUMS,
}


@dataclass
class Sums:
    """Nodes of some part of the fleet by their state, and their GPUs: as boards, and as what can be allocated."""

    numbers: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(NODE_SUMS, 0)))
    by_state: Counter[NodeState] = field(default_factory=Counter)

    def add(self, row: Mapping[str, Any], *, times: int = 1) -> None:
        """Count in a group of nodes of one state, which the database counted `times` times."""
        for name in NODE_SUMS:
            self.numbers[name] += row[name] // times
        self.by_state[NodeState(row["state_code"])] += row["nodes"] // times

    @property
    def nodes(self) -> int:
        return self.numbers["nodes"]

    @property
    def held(self) -> int:
        return self.numbers["held"]

    @property
    def physical(self) -> Physical:
        return Physical.of(self.numbers)

    @property
    def gpus(self) -> GpuAmount:
        """Whole ones."""
        return GpuAmount.of(self.numbers, "gpus")

    @property
    def slices(self) -> GpuAmount:
        return GpuAmount.of(self.numbers, "slices")

    @property
    def shares(self) -> GpuAmount:
        return GpuAmount.of(self.numbers, "shares")

    @property
    def amounts(self) -> list[tuple[str, GpuAmount]]:
        """Of what there is: the word for one, and how many."""
        found = (("GPU", self.gpus), ("slice", self.slices), ("share", self.shares))
        return [(word, amount) for word, amount in found if amount.expected]

    @property
    def ready(self) -> int:
        return sum(self.by_state[state] for state in (NodeState.READY, NodeState.HELD))

    @property
    def faulty(self) -> int:
        return sum(self.by_state[state] for state in FAULTS)

    @property
    def changing(self) -> int:
        return self.by_state[NodeState.UPGRADING]

    @property
    def reconfiguring(self) -> int:
        return self.by_state.get(NodeState.RECONFIGURING, 0)

    @property
    def cordoned(self) -> int:
        return self.by_state[NodeState.CORDONED]


def sums_of(nodes: QuerySet) -> Sums:
    """Costs one query."""
    sums = Sums()
    for row in nodes.order_by().values("state_code").annotate(**NODE_SUMS):
        sums.add(row)
    return sums


@dataclass
class PoolLine:
    pool: Pool
    sums: Sums = field(default_factory=Sums)
    mix: Counter[str] = field(default_factory=Counter)  # driver version → nodes; blank: no label says
    products: set[str] = field(default_factory=set)
    as_of: datetime | None = None  # when its cluster was last heard, where that is not now

    def add(self, row: Mapping[str, Any]) -> None:
        self.sums.add(row)
        self.mix[row["driver_version"]] += row["nodes"]
        self.products |= {row["gpu_product"]} - {""}

    @property
    def drivers(self) -> list[tuple[str, int]]:
        """The most common first."""
        return sorted(self.mix.items(), key=lambda pair: (-pair[1], pair[0]))

    @property
    def disagrees(self) -> bool:
        return len([version for version in self.mix if version]) > 1


@dataclass
class Strays(Sums):
    """Nodes that no one pool has, of any cluster."""

    clusters: set[int] = field(default_factory=set)
    as_of: datetime | None = (
        None  # when that of their clusters was heard which was heard longest ago; None: all are live
    )

    def add(self, row: Mapping[str, Any], *, times: int = 1) -> None:
        super().add(row, times=times)
        self.clusters.add(row["cluster"])


@dataclass
class FleetRead:
    """The GPU nodes of the fleet, or of a cluster, at one moment: pools, less their overlap, and the rest are it."""

    whole: Sums
    pools: list[PoolLine]
    unpooled: Strays  # nodes in no pool
    overlap: Strays  # nodes in several: what the pools count more than once

    @property
    def strays(self) -> dict[str, int]:
        """How many are in no pool, and in more than one: both are mistakes somebody should see."""
        return {"none": self.unpooled.nodes, "several": self.overlap.nodes}


def read_fleet(user, *, cluster: Cluster | None = None) -> FleetRead:
    """Two queries, of which one counts: a node that flaps is the same in the whole and in its pool."""
    nodes, pools = Node.objects.visible_to(user).with_gpus(), Pool.objects.visible_to(user).select_related("cluster")
    if cluster:
        nodes, pools = nodes.filter(cluster=cluster), pools.filter(cluster=cluster)
    lines = {pool.pk: PoolLine(pool) for pool in pools}
    read = FleetRead(Sums(), list(lines.values()), Strays(), Strays())
    several: dict[tuple[int, int], list[Mapping[str, Any]]] = defaultdict(list)
    groups: QuerySet = nodes.order_by().annotate(in_pools=Coalesce(number_of_pools(), 0))
    for row in groups.values("cluster", "pools", "in_pools", "state_code", "driver_version", "gpu_product").annotate(
        **NODE_SUMS
    ):
        if row["pools"] in lines:
            lines[row["pools"]].add(row)
        if row["in_pools"] > 1:
            several[row["cluster"], row["in_pools"]].append(row)
            continue
        read.whole.add(row)
        if row["pools"] is None:
            read.unpooled.add(row)
    for (number, times), rows in several.items():
        for row in _by_state(rows, cluster=number):
            read.whole.add(row, times=times)
            read.overlap.add(row, times=times)
    return read


def date_pools(read: FleetRead, heard: Mapping[int, freshness.ClusterFreshness]) -> None:
    """Say of each pool whose cluster is not live when it was counted, and of strays. `heard`: by the cluster's key."""
    for line in read.pools:
        of_its_cluster = heard.get(line.pool.cluster_id)
        if of_its_cluster is not None and not of_its_cluster.is_fresh:
            line.as_of = of_its_cluster.heard_at
    for strays in (read.unpooled, read.overlap):
        found = [heard[cluster] for cluster in strays.clusters if cluster in heard]
        strays.as_of = min((each.heard_at for each in found if not each.is_fresh and each.heard_at), default=None)


def _by_state(rows: Iterable[Mapping[str, Any]], *, cluster: int) -> Iterable[Mapping[str, Any]]:
    """Added up by state: of each, all pools of a node are in it, so that it divides by their number."""
    found: dict[int, Counter[str]] = defaultdict(Counter)
    for row in rows:
        found[row["state_code"]].update({name: row[name] for name in NODE_SUMS})
    return ({"cluster": cluster, "state_code": code, **numbers} for code, numbers in found.items())


def pool_strays(user) -> dict[str, int]:
    """Of all that the user may see. One query."""
    nodes = Node.objects.visible_to(user).with_gpus().order_by().annotate(in_pools=Coalesce(number_of_pools(), 0))
    return nodes.aggregate(
        none=Count("pk", filter=Q(in_pools=0)),
        several=Count("pk", filter=Q(in_pools__gt=1)),
    )


@dataclass(frozen=True)
class ClusterLine:
    cluster: Cluster
    freshness: freshness.ClusterFreshness
    seq: int
    nodes: int
    gpu_nodes: int

    @property
    def is_bad(self) -> bool:
        """Whether somebody should look: not seen, somebody else's, behind, or with kinds that are not read."""
        is_behind = hasattr(self.cluster, "observer") and self.cluster.observer.behind_since is not None
        return bool(not self.freshness.is_fresh or self.cluster.foreign_uid or is_behind or self.freshness.troubles)


def cluster_lines(user, *, now: datetime) -> list[ClusterLine]:
    clusters = list(Cluster.objects.visible_to(user).select_related("observer").order_by("name"))
    bookmarks: dict[int, list[Bookmark]] = defaultdict(list)
    for bookmark in Bookmark.objects.filter(cluster__in=clusters):
        bookmarks[bookmark.cluster_id].append(bookmark)
    counted: dict[int, dict[str, Any]] = {
        row["cluster"]: dict(row)
        for row in Node.objects.visible_to(user)
        .order_by()
        .values("cluster")
        .annotate(nodes=Count("pk"), gpu_nodes=Count("pk", filter=Q(is_gpu_node=True)))
    }
    return [
        ClusterLine(
            cluster=cluster,
            freshness=freshness.of_cluster(
                bookmarks[cluster.pk],
                now=now,
                observer=getattr(cluster, "observer", None),
                added_at=cluster.added_at,
            ),
            seq=cluster.observer.batch if hasattr(cluster, "observer") else 0,
            nodes=counted.get(cluster.pk, {}).get("nodes", 0),
            gpu_nodes=counted.get(cluster.pk, {}).get("gpu_nodes", 0),
        )
        for cluster in clusters
    ]
