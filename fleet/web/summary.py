"""The one line above the fleet, and what each of its pools and clusters comes to. A fixed number of queries each."""

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Case, Count, F, IntegerField, Q, QuerySet, Sum, Value, When
from django.db.models.expressions import Combinable
from django.db.models.functions import Coalesce, Greatest

from fleet.allocation.tally import GPUS_MISSING, SHARES_MISSING, SLICES_MISSING
from fleet.models import Bookmark, Cluster, Node, Pool
from fleet.node_state import NodeState
from fleet.segments.facets import in_several_pools
from fleet.web import freshness
from fleet.web.filters import FAULTS, with_state

ALLOCATABLE = Coalesce(F("gpu_allocatable"), 0)


def _free(allocatable: Combinable, allocated: str) -> Case:
    return Case(
        When(Q(is_ready=True, is_unschedulable=False), then=Greatest(allocatable - F(allocated), 0)),
        default=Value(0),
        output_field=IntegerField(),
    )


GPU_SUMS = {
    "nodes": Count("pk"),
    "capacity": Coalesce(Sum("gpu_capacity"), 0),
    "expected": Coalesce(Sum("gpu_expected"), 0),
    "allocatable": Coalesce(Sum("gpu_allocatable"), 0),
    "allocated": Coalesce(Sum("gpu_allocated"), 0),
    "free": Coalesce(Sum(_free(ALLOCATABLE, "gpu_allocated")), 0),
    "missing": Coalesce(Sum(GPUS_MISSING), 0),
    "slices": Coalesce(Sum("slices_expected"), 0),
    "slices_taken": Coalesce(Sum("slices_allocated"), 0),
    "slices_free": Coalesce(Sum(_free(F("slices_allocatable"), "slices_allocated")), 0),
    "slices_missing": Coalesce(Sum(SLICES_MISSING), 0),
    "shares": Coalesce(Sum("shares_expected"), 0),
    "shares_taken": Coalesce(Sum("shares_allocated"), 0),
    "shares_free": Coalesce(Sum(_free(F("shares_allocatable"), "shares_allocated")), 0),
    "shares_missing": Coalesce(Sum(SHARES_MISSING), 0),
    "held": Count("pk", filter=Q(is_held=True)),
    "silent": Count("pk", filter=Q(gpu_allocatable=None, gpu_expected=None, slices_expected=0, shares_expected=0)),
}


@dataclass
class Sums:
    """GPUs and nodes of some part of the fleet. `free` can be had now: on a ready node that takes pods.

    Slices and shares are counted for themselves; no GPU that is cut or shared is among the GPUs.
    """

    nodes: int = 0
    capacity: int = 0
    expected: int = 0
    allocatable: int = 0
    allocated: int = 0
    free: int = 0
    missing: int = 0
    slices: int = 0  # expected
    slices_taken: int = 0
    slices_free: int = 0
    slices_missing: int = 0
    shares: int = 0
    shares_taken: int = 0
    shares_free: int = 0
    shares_missing: int = 0
    held: int = 0
    silent: int = 0  # nodes that never named a GPU resource: their GPUs are in none of the numbers
    by_state: dict[NodeState, int] = field(default_factory=dict)

    @property
    def ready(self) -> int:
        return sum(self.by_state.get(state, 0) for state in (NodeState.READY, NodeState.HELD))

    @property
    def faulty(self) -> int:
        return sum(self.by_state.get(state, 0) for state in FAULTS)

    @property
    def changing(self) -> int:
        return self.by_state.get(NodeState.UPGRADING, 0)

    @property
    def reconfiguring(self) -> int:
        return self.by_state.get(NodeState.RECONFIGURING, 0)

    @property
    def cordoned(self) -> int:
        return self.by_state.get(NodeState.CORDONED, 0)

    @property
    def unusable(self) -> int:
        """Allocatable, not allocated, and yet not to be had: cordoned or not ready."""
        return max(0, self.allocatable - self.allocated - self.free)

    def add(self, row: dict[str, Any]) -> None:
        """Count in a group of nodes of one state."""
        for name in GPU_SUMS:
            setattr(self, name, getattr(self, name) + row[name])
        state = NodeState(row["code"])
        self.by_state[state] = self.by_state.get(state, 0) + row["nodes"]


def sums_of(nodes: QuerySet) -> Sums:
    """Costs one query."""
    sums = Sums()
    for row in with_state(nodes).order_by().values("code").annotate(**GPU_SUMS):
        sums.add(row)
    return sums


@dataclass
class PoolLine:
    pool: Pool
    sums: Sums = field(default_factory=Sums)
    mix: dict[str, int] = field(default_factory=dict)  # driver version → nodes; blank: they do not say
    products: set[str] = field(default_factory=set)

    def add(self, row: dict[str, Any]) -> None:
        self.sums.add(row)
        self.mix[row["driver_version"]] = self.mix.get(row["driver_version"], 0) + row["nodes"]
        self.products |= {row["gpu_product"]} - {""}

    @property
    def drivers(self) -> list[tuple[str, int]]:
        """The most common first."""
        return sorted(self.mix.items(), key=lambda pair: (-pair[1], pair[0]))

    @property
    def disagrees(self) -> bool:
        return len([version for version in self.mix if version]) > 1


def pool_lines(user, *, cluster: Cluster | None = None) -> list[PoolLine]:
    """Costs two queries. `cluster` None: of all there are."""
    pools = Pool.objects.visible_to(user).select_related("cluster")
    pools = pools.filter(cluster=cluster) if cluster else pools
    lines = {pool.pk: PoolLine(pool) for pool in pools}
    members = with_state(Node.objects.with_gpus()).order_by().filter(pools__in=list(lines))
    for row in members.values("pools", "code", "driver_version", "gpu_product").annotate(**GPU_SUMS):
        lines[row["pools"]].add(row)
    return list(lines.values())


def pool_strays(user) -> dict[str, int]:
    """How many GPU nodes are in no pool, and in more than one: both are mistakes somebody should see."""
    nodes = Node.objects.visible_to(user).with_gpus()
    in_any = Node.pools.through.objects.values("node_id")
    return {"none": nodes.exclude(pk__in=in_any).count(), "several": nodes.filter(pk__in=in_several_pools()).count()}


@dataclass(frozen=True)
class ClusterLine:
    cluster: Cluster
    freshness: freshness.ClusterFreshness
    seq: int
    nodes: int
    gpu_nodes: int


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
            freshness=freshness.of_cluster(bookmarks[cluster.pk], now=now),
            seq=cluster.observer.batch if hasattr(cluster, "observer") else 0,
            nodes=counted.get(cluster.pk, {}).get("nodes", 0),
            gpu_nodes=counted.get(cluster.pk, {}).get("gpu_nodes", 0),
        )
        for cluster in clusters
    ]
