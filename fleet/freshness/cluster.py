"""What is heard of one cluster, of each kind and of the whole: how old what is shown of it is."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from fleet.freshness.kinds import PODS, Freshness, KindFreshness, freshnesses, named, never_heard, unheard
from fleet.freshness.observation_state import ClusterSight, Sight, sight_of
from fleet.models import Bookmark, Cluster, Observer


@dataclass(frozen=True)
class ClusterFreshness:
    """What is heard of one cluster."""

    kinds: tuple[KindFreshness, ...]  # those that were ever asked for
    sight: ClusterSight

    @property
    def heard_at(self) -> datetime | None:
        return self.sight.heard_at

    @property
    def is_fresh(self) -> bool:
        return self.sight.is_live

    @property
    def is_loading(self) -> bool:
        """Whether its nodes are being listed for the first time."""
        return self.sight.state is Sight.CONNECTING and bool(self.sight.loading)

    @property
    def has_begun(self) -> bool:
        return self.sight.is_known

    @cached_property
    def by_kind(self) -> Mapping[str, KindFreshness]:
        """As pages and answers say it of rows: none is live while the cluster does not answer."""
        does_not_answer = self.sight.state in {Sight.FAILING, Sight.STALE}
        return named(map(unheard, self.kinds) if does_not_answer else self.kinds)

    @property
    def knows_pods(self) -> bool:
        """Whether its pods were ever read: else nobody knows what they have, which is not nothing."""
        return self.by_kind[PODS].is_known

    @property
    def pods_as_of(self) -> datetime | None:
        """When its pods were last seen: nodes may be heard, and pods no more. None: they are now, or never were."""
        pods = self.by_kind[PODS]
        return None if pods.state is Freshness.LIVE else pods.heard_at

    @property
    def sentence(self) -> str:
        """Why it is not live; blank where it is."""
        return self.sight.sentence

    @property
    def troubles(self) -> list[KindFreshness]:
        """Kinds that somebody should look at. Not those that are as stale as the whole cluster: it says so once."""
        return [kind for kind in self.kinds if kind.is_trouble and (self.is_fresh or not kind.is_known)]


def cluster_freshness(
    bookmarks: list[Bookmark], *, now: datetime, observer: Observer | None = None, added_at: datetime | None = None
) -> ClusterFreshness:
    kinds = tuple(freshnesses(bookmarks, now=now))
    return ClusterFreshness(kinds, sight_of(bookmarks, observer, added_at=added_at, now=now))


def heard_of(row: Cluster, *, now: datetime) -> ClusterFreshness:
    """One query where the cluster was loaded without its bookmarks, and one more where without its observer."""
    observer = getattr(row, "observer", None)
    return cluster_freshness(list(row.bookmarks.all()), now=now, observer=observer, added_at=row.added_at)


def last_heard(cluster_id: int, kind: str, *, now: datetime) -> datetime | None:
    """When anybody last heard of it there. None: just now, or never. One query."""
    found = _kind_of(cluster_id, kind, now=now)
    return None if found.state is Freshness.LIVE else found.heard_at


def why_unseen(cluster_id: int, kind: str, *, now: datetime) -> str:
    """Why the rows of a kind do not say how it is. Blank: they do, or the cluster has none. One query."""
    found = _kind_of(cluster_id, kind, now=now)
    return "" if found.state in {Freshness.LIVE, Freshness.ABSENT} else found.sentence


def _kind_of(cluster_id: int, kind: str, *, now: datetime) -> KindFreshness:
    found = cluster_freshness(list(Bookmark.objects.filter(cluster=cluster_id)), now=now).by_kind
    return found.get(kind) or never_heard(kind)
