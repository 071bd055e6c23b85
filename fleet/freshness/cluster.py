"""The freshness of a cluster's data, per kind and in total."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from fleet.freshness.kinds import (
    PODS,
    Freshness,
    KindFreshness,
    as_failing,
    freshness_by_kind,
    freshnesses,
    never_listed,
)
from fleet.freshness.observation_state import ClusterObservation, ObservationState, observation_of
from fleet.models import Bookmark, Cluster, Observer


@dataclass(frozen=True)
class ClusterFreshness:
    kinds: tuple[KindFreshness, ...]  # kinds that were requested at least once
    observation: ClusterObservation

    @property
    def last_seen_at(self) -> datetime | None:
        return self.observation.last_seen_at

    @property
    def is_fresh(self) -> bool:
        return self.observation.is_live

    @property
    def is_loading(self) -> bool:
        """Tells whether its nodes are being listed for the first time."""
        return self.observation.state is ObservationState.CONNECTING and bool(self.observation.loading)

    @property
    def has_begun(self) -> bool:
        return self.observation.is_known

    @cached_property
    def by_kind(self) -> Mapping[str, KindFreshness]:
        """Returns the freshness by kind. No kind is live while the cluster does not answer."""
        does_not_answer = self.observation.state in {ObservationState.FAILING, ObservationState.STALE}
        return freshness_by_kind(map(as_failing, self.kinds) if does_not_answer else self.kinds)

    @property
    def knows_pods(self) -> bool:
        """Tells whether its pods were ever read; otherwise their GPUs are unknown, not zero."""
        return self.by_kind[PODS].is_known

    @property
    def pods_as_of(self) -> datetime | None:
        """Returns the last update of its pods. None: they are live, or were never read."""
        pods = self.by_kind[PODS]
        return None if pods.state is Freshness.LIVE else pods.last_seen_at

    @property
    def sentence(self) -> str:
        """Returns why it is not live; blank if it is."""
        return self.observation.sentence

    @property
    def troubles(self) -> list[KindFreshness]:
        """Returns the kinds with problems, without those that are stale only because the whole cluster is."""
        return [kind for kind in self.kinds if kind.is_trouble and (self.is_fresh or not kind.is_known)]


def cluster_freshness(
    bookmarks: list[Bookmark], *, now: datetime, observer: Observer | None = None, added_at: datetime | None = None
) -> ClusterFreshness:
    kinds = tuple(freshnesses(bookmarks, now=now))
    return ClusterFreshness(kinds, observation_of(bookmarks, observer, added_at=added_at, now=now))


def load_cluster_freshness(row: Cluster, *, now: datetime) -> ClusterFreshness:
    """Returns the freshness of a cluster. One query if bookmarks are not loaded, one more for the observer."""
    observer = getattr(row, "observer", None)
    return cluster_freshness(list(row.bookmarks.all()), now=now, observer=observer, added_at=row.added_at)


def stale_since(cluster_id: int, kind: str, *, now: datetime) -> datetime | None:
    """Returns the last update of a kind. None: live, or never. One query."""
    found = _kind_of(cluster_id, kind, now=now)
    return None if found.state is Freshness.LIVE else found.last_seen_at


def why_unseen(cluster_id: int, kind: str, *, now: datetime) -> str:
    """Returns why the rows of a kind are not current. Blank: current, or the cluster has none. One query."""
    found = _kind_of(cluster_id, kind, now=now)
    return "" if found.state in {Freshness.LIVE, Freshness.ABSENT} else found.sentence


def _kind_of(cluster_id: int, kind: str, *, now: datetime) -> KindFreshness:
    found = cluster_freshness(list(Bookmark.objects.filter(cluster=cluster_id)), now=now).by_kind
    return found.get(kind) or never_listed(kind)
