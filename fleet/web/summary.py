"""The summary of the fleet, its pools and its clusters, each with a fixed number of queries."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from django.utils.functional import SimpleLazyObject

from fleet.allocation.tally import Alike, Tally, read_alike, tally
from fleet.freshness.cluster import ClusterFreshness
from fleet.models import Bookmark, Cluster, Pool
from fleet.queries import ClusterRow, PoolRow, see_cluster, see_clusters, see_pool
from wording.lists import names


@dataclass(frozen=True)
class MisassignedNodes:
    """GPU nodes in no pool, or in several, of any cluster."""

    tally: Tally
    as_of: datetime | None  # the oldest last update of their clusters; None: all live


@dataclass(frozen=True)
class FleetRead:
    """The nodes of the fleet or a cluster at one moment. Pools minus their overlap plus the rest make the total."""

    whole: Tally
    pools: list[PoolRow]
    unpooled: MisassignedNodes  # GPU nodes in no pool
    overlap: MisassignedNodes  # GPU nodes in several pools, counted more than once in pools

    @property
    def misassigned(self) -> dict[str, int]:
        """Returns the GPU nodes in no pool and in several; both are mistakes."""
        return {"none": self.unpooled.tally.gpu_nodes or 0, "several": self.overlap.tally.gpu_nodes or 0}


def read_fleet(user, counted: Iterable[Alike], freshness: Mapping[int, ClusterFreshness]) -> FleetRead:
    """Builds totals from counts of one moment, so that a node has one state everywhere. One query.

    `freshness` has every visible cluster by key. Counts of a stale cluster are dated. A new cluster, or one with
    unknown nodes, is not counted.
    """
    alike = [each for each in counted if each.cluster in freshness and freshness[each.cluster].has_begun]
    pools = Pool.objects.visible_to(user).filter(cluster__in=list(freshness)).select_related("cluster")
    pools = pools.order_by("cluster__name", "name")
    gpu_nodes = [each for each in alike if each.is_gpu_node]
    return FleetRead(
        whole=tally(alike),
        pools=[see_pool(pool, alike, freshness[pool.cluster_id]) for pool in pools],
        unpooled=_misassigned([each for each in gpu_nodes if not each.pools], freshness),
        overlap=_misassigned([each for each in gpu_nodes if len(each.pools) > 1], freshness),
    )


def _misassigned(alike: Sequence[Alike], freshness: Mapping[int, ClusterFreshness]) -> MisassignedNodes:
    counted = tally(alike)
    found = [freshness[cluster] for cluster in counted.clusters]
    return MisassignedNodes(
        counted, min((each.last_seen_at for each in found if not each.is_fresh and each.last_seen_at), default=None)
    )


def not_counted(lines: Iterable[ClusterRow]) -> str:
    """Returns the names of uncounted clusters. Blank: none."""
    return names([line.cluster.name for line in lines if not line.freshness.has_begun])


def freshness_by_cluster(lines: Iterable[ClusterRow]) -> dict[int, ClusterFreshness]:
    return {line.cluster.pk: line.freshness for line in lines}


def alike_nodes(lines: Iterable[ClusterRow]) -> list[Alike]:
    return [each for line in lines for each in line.alike]


def lines_for(request: HttpRequest, *, now: datetime) -> list[ClusterRow]:
    """Returns the clusters, loaded once per request, so that page and parts show the same moment."""
    if not hasattr(request, "cluster_lines"):
        request.cluster_lines = cluster_lines(request.user, now=now)  # type: ignore[attr-defined]
    return request.cluster_lines  # type: ignore[attr-defined]


def line_for(request: HttpRequest, cluster_id: int, *, now: datetime) -> ClusterRow:
    """Returns one cluster. Two queries, and one more when counts are used.

    :raises Http404: when it is invisible
    """
    line: ClusterRow | None = getattr(request, "cluster_line", None)
    if line is None or line.cluster.pk != cluster_id:
        seen = Cluster.objects.visible_to(request.user).select_related("observer")
        row = get_object_or_404(seen, pk=cluster_id)
        alike: Any = SimpleLazyObject(lambda: read_alike(request.user, clusters=[cluster_id]))
        line = see_cluster(row, list(Bookmark.objects.filter(cluster=row)), alike, now=now)
        request.cluster_line = line  # type: ignore[attr-defined]
    return line


def cluster_for(request: HttpRequest, cluster_id: int) -> Cluster:
    """Returns the cluster alone. One query unless loaded.

    :raises Http404: when it is invisible
    """
    line: ClusterRow | None = getattr(request, "cluster_line", None)
    if line is not None and line.cluster.pk == cluster_id:
        return line.cluster
    return get_object_or_404(Cluster.objects.visible_to(request.user), pk=cluster_id)


def cluster_lines(user, *, now: datetime) -> list[ClusterRow]:
    """Returns the visible clusters by name. Four queries."""
    clusters = Cluster.objects.visible_to(user).select_related("observer").order_by("name")
    return see_clusters(list(clusters), user=user, now=now)
