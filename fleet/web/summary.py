"""The one line above the fleet, and what each of its pools and clusters comes to. A fixed number of queries each."""

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
class Strays:
    """GPU nodes that no one pool has, of any cluster."""

    tally: Tally
    as_of: datetime | None  # when that of their clusters was heard which was heard longest ago; None: all are live


@dataclass(frozen=True)
class FleetRead:
    """The nodes of the fleet, or of a cluster, at one moment: pools, less their overlap, and the rest are it."""

    whole: Tally
    pools: list[PoolRow]
    unpooled: Strays  # GPU nodes in no pool
    overlap: Strays  # GPU nodes in several: what the pools count more than once

    @property
    def strays(self) -> dict[str, int]:
        """How many are in no pool, and in more than one: both are mistakes somebody should see."""
        return {"none": self.unpooled.tally.gpu_nodes or 0, "several": self.overlap.tally.gpu_nodes or 0}


def read_fleet(user, counted: Iterable[Alike], heard: Mapping[int, ClusterFreshness]) -> FleetRead:
    """Of what was counted at one moment: a node that flaps is the same in the whole and in its pool. One query.

    `heard`: of every cluster that the user sees, by its key. What is counted of one that is not live says of when. One
    that was added since is not read yet, and one whose nodes nobody knows is in no sum.
    """
    alike = [each for each in counted if each.cluster in heard and heard[each.cluster].has_begun]
    pools = Pool.objects.visible_to(user).filter(cluster__in=list(heard)).select_related("cluster")
    pools = pools.order_by("cluster__name", "name")
    gpu_nodes = [each for each in alike if each.is_gpu_node]
    return FleetRead(
        whole=tally(alike),
        pools=[see_pool(pool, alike, heard[pool.cluster_id]) for pool in pools],
        unpooled=_strays([each for each in gpu_nodes if not each.pools], heard),
        overlap=_strays([each for each in gpu_nodes if len(each.pools) > 1], heard),
    )


def _strays(alike: Sequence[Alike], heard: Mapping[int, ClusterFreshness]) -> Strays:
    counted = tally(alike)
    found = [heard[cluster] for cluster in counted.clusters]
    return Strays(counted, min((each.heard_at for each in found if not each.is_fresh and each.heard_at), default=None))


def not_counted(lines: Iterable[ClusterRow]) -> str:
    """The clusters that are in no sum, by name. Blank: all are."""
    return names([line.cluster.name for line in lines if not line.freshness.has_begun])


def heard_by(lines: Iterable[ClusterRow]) -> dict[int, ClusterFreshness]:
    return {line.cluster.pk: line.freshness for line in lines}


def counted_by(lines: Iterable[ClusterRow]) -> list[Alike]:
    return [each for line in lines for each in line.alike]


def lines_for(request: HttpRequest, *, now: datetime) -> list[ClusterRow]:
    """Once a request: a page, and the parts that it takes from the apps above, say the same of one moment."""
    if not hasattr(request, "cluster_lines"):
        request.cluster_lines = cluster_lines(request.user, now=now)  # type: ignore[attr-defined]
    return request.cluster_lines  # type: ignore[attr-defined]


def line_for(request: HttpRequest, cluster_id: int, *, now: datetime) -> ClusterRow:
    """The same of one cluster. Two queries, and one more where somebody asks what is counted.

    :raises Http404: they do not see it
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
    """The cluster alone, for a part that counts nothing of it. One query, where nothing of the page has read it.

    :raises Http404: they do not see it
    """
    line: ClusterRow | None = getattr(request, "cluster_line", None)
    if line is not None and line.cluster.pk == cluster_id:
        return line.cluster
    return get_object_or_404(Cluster.objects.visible_to(request.user), pk=cluster_id)


def cluster_lines(user, *, now: datetime) -> list[ClusterRow]:
    """Those that the user sees, by name. Four queries."""
    clusters = Cluster.objects.visible_to(user).select_related("observer").order_by("name")
    return see_clusters(list(clusters), user=user, now=now)
