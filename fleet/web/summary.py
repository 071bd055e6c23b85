"""The one line above the fleet, and what each of its pools and clusters comes to. A fixed number of queries each."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from django.utils.functional import SimpleLazyObject

from fleet.allocation.tally import Alike, Tally, read_alike, tally
from fleet.freshness.cluster import ClusterFreshness, cluster_freshness
from fleet.models import Bookmark, Cluster, Pool
from fleet.queries import known, see_pool
from wording.lists import names


@dataclass
class PoolLine:
    pool: Pool
    sums: Tally
    as_of: datetime | None = None  # when its cluster was last heard, where that is not now


@dataclass
class Strays:
    """GPU nodes that no one pool has, of any cluster."""

    sums: Tally
    # When that of their clusters was heard which was heard longest ago. None: all are live.
    as_of: datetime | None = None


@dataclass
class FleetRead:
    """The nodes of the fleet, or of a cluster, at one moment: pools, less their overlap, and the rest are it."""

    whole: Tally
    pools: list[PoolLine]
    unpooled: Strays  # GPU nodes in no pool
    overlap: Strays  # GPU nodes in several: what the pools count more than once

    @property
    def strays(self) -> dict[str, int]:
        """How many are in no pool, and in more than one: both are mistakes somebody should see."""
        return {"none": self.unpooled.sums.gpu_nodes or 0, "several": self.overlap.sums.gpu_nodes or 0}


def read_fleet(user, counted: Iterable[Alike], heard: Mapping[int, ClusterFreshness]) -> FleetRead:
    """Of what was counted at one moment: a node that flaps is the same in the whole and in its pool. One query.

    `heard`: of every cluster that the user sees, by its key. What is counted of one that is not live says of when. One
    that was added since is not read yet, and one whose nodes nobody knows is in no sum.
    """
    alike = [each for each in counted if each.cluster in heard and heard[each.cluster].has_begun]
    pools = Pool.objects.visible_to(user).filter(cluster__in=list(heard)).select_related("cluster")
    pools = pools.order_by("cluster__name", "name")
    gpu_nodes = [each for each in alike if each.is_gpu_node]
    read = FleetRead(
        whole=tally(alike),
        pools=[PoolLine(pool, see_pool(pool, alike, heard[pool.cluster_id].by_kind).tally) for pool in pools],
        unpooled=Strays(tally([each for each in gpu_nodes if not each.pools])),
        overlap=Strays(tally([each for each in gpu_nodes if len(each.pools) > 1])),
    )
    _date(read, heard)
    return read


def _date(read: FleetRead, heard: Mapping[int, ClusterFreshness]) -> None:
    for line in read.pools:
        if not heard[line.pool.cluster_id].is_fresh:
            line.as_of = heard[line.pool.cluster_id].heard_at
    for strays in (read.unpooled, read.overlap):
        found = [heard[cluster] for cluster in strays.sums.clusters if cluster in heard]
        strays.as_of = min((each.heard_at for each in found if not each.is_fresh and each.heard_at), default=None)


@dataclass(frozen=True)
class ClusterLine:
    cluster: Cluster
    freshness: ClusterFreshness
    bookmarks: list[Bookmark]
    alike: Sequence[Alike]  # what is counted of its nodes, known or not

    @cached_property
    def sums(self) -> Tally:
        return known(tally(self.alike), self.freshness.by_kind)

    @property
    def seq(self) -> int:
        return self.cluster.observer.batch if hasattr(self.cluster, "observer") else 0

    @property
    def is_bad(self) -> bool:
        """Whether somebody should look: not seen, somebody else's, behind, or with kinds that are not read."""
        is_behind = hasattr(self.cluster, "observer") and self.cluster.observer.behind_since is not None
        return bool(not self.freshness.is_fresh or self.cluster.foreign_uid or is_behind or self.freshness.troubles)


def not_counted(lines: Iterable[ClusterLine]) -> str:
    """The clusters that are in no sum, by name. Blank: all are."""
    return names([line.cluster.name for line in lines if not line.freshness.has_begun])


def heard_by(lines: Iterable[ClusterLine]) -> dict[int, ClusterFreshness]:
    return {line.cluster.pk: line.freshness for line in lines}


def counted_by(lines: Iterable[ClusterLine]) -> list[Alike]:
    return [each for line in lines for each in line.alike]


def lines_for(request: HttpRequest, *, now: datetime) -> list[ClusterLine]:
    """Once a request: a page, and the parts that it takes from the apps above, say the same of one moment."""
    if not hasattr(request, "cluster_lines"):
        request.cluster_lines = cluster_lines(request.user, now=now)  # type: ignore[attr-defined]
    return request.cluster_lines  # type: ignore[attr-defined]


def line_for(request: HttpRequest, cluster_id: int, *, now: datetime) -> ClusterLine:
    """The same of one cluster. Two queries, and one more where somebody asks what is counted.

    :raises Http404: they do not see it
    """
    line: ClusterLine | None = getattr(request, "cluster_line", None)
    if line is None or line.cluster.pk != cluster_id:
        seen = Cluster.objects.visible_to(request.user).select_related("observer")
        row = get_object_or_404(seen, pk=cluster_id)
        alike: Any = SimpleLazyObject(lambda: read_alike(request.user, clusters=[cluster_id]))
        line = _line(row, list(Bookmark.objects.filter(cluster=row)), alike, now=now)
        request.cluster_line = line  # type: ignore[attr-defined]
    return line


def cluster_lines(user, *, now: datetime) -> list[ClusterLine]:
    """Three queries."""
    clusters = list(Cluster.objects.visible_to(user).select_related("observer").order_by("name"))
    bookmarks: dict[int, list[Bookmark]] = defaultdict(list)
    for bookmark in Bookmark.objects.filter(cluster__in=clusters):
        bookmarks[bookmark.cluster_id].append(bookmark)
    alike: dict[int, list[Alike]] = defaultdict(list)
    for each in read_alike(user):
        alike[each.cluster].append(each)
    return [_line(each, bookmarks[each.pk], alike[each.pk], now=now) for each in clusters]


def _line(cluster: Cluster, bookmarks: list[Bookmark], alike: Sequence[Alike], *, now: datetime) -> ClusterLine:
    observer = getattr(cluster, "observer", None)
    heard = cluster_freshness(bookmarks, now=now, observer=observer, added_at=cluster.added_at)
    return ClusterLine(cluster, heard, bookmarks, alike)
