"""How old what a page shows of a cluster is, and in which words it says so."""

from dataclasses import dataclass
from datetime import datetime

from fleet.freshness.kinds import NAMES, PODS, name_of
from fleet.freshness.sight import ClusterSight, sight_of
from fleet.models import Bookmark, BookmarkState, Cluster, Observer

KINDS: dict[str, str] = {
    "nodes": "nodes",
    "pods": "pods",
    "daemonsets.apps": "operands",
    "controllerrevisions.apps": "revisions",
    "nvidiadrivers.nvidia.com": "drivers",
    "clusterpolicies.nvidia.com": "policy",
}
GONE = {BookmarkState.ABSENT: "not installed", BookmarkState.FORBIDDEN: "not permitted"}


@dataclass(frozen=True)
class KindFreshness:
    kind: str
    title: str
    glyph: str
    word: str
    heard_at: datetime | None
    is_fresh: bool
    message: str
    is_listed: bool = False

    @property
    def is_trouble(self) -> bool:
        return self.glyph != "ok" and self.word != GONE[BookmarkState.ABSENT]


@dataclass(frozen=True)
class ClusterFreshness:
    """What is heard of one cluster."""

    kinds: tuple[KindFreshness, ...]
    sight: ClusterSight

    @property
    def heard_at(self) -> datetime | None:
        return self.sight.heard_at

    @property
    def is_fresh(self) -> bool:
        return self.sight.is_live

    @property
    def has_begun(self) -> bool:
        return self.sight.is_known

    @property
    def knows_pods(self) -> bool:
        """Whether its pods were ever read: else nobody knows what they hold, which is not nothing."""
        return any(kind.kind == PODS and kind.is_listed for kind in self.kinds)

    @property
    def sentence(self) -> str:
        """Why it is not live; blank where it is."""
        return self.sight.sentence

    @property
    def read(self) -> int:
        """Kinds of which a whole list was written."""
        return sum(kind.is_listed for kind in self.kinds)

    @property
    def troubles(self) -> list[KindFreshness]:
        """Kinds that somebody should look at. Not those that are as stale as the whole cluster: it says so once."""
        return [kind for kind in self.kinds if kind.is_trouble and (self.is_fresh or not kind.is_listed)]


def of_kind(bookmark: Bookmark, *, now: datetime) -> KindFreshness:
    title = KINDS.get(bookmark.kind) or name_of(bookmark.kind)
    is_fresh = bookmark.is_fresh(now=now)
    if bookmark.state in GONE:
        glyph = "unseen" if bookmark.state == BookmarkState.ABSENT else "bad"
        word = GONE[BookmarkState(bookmark.state)]
        return KindFreshness(bookmark.kind, title, glyph, word, None, is_fresh, bookmark.message)
    if bookmark.listed_at is None:
        word = "failing" if bookmark.state == BookmarkState.FAILING else "first list"
        glyph = "bad" if bookmark.state == BookmarkState.FAILING else "waiting"
    elif not is_fresh:
        glyph, word = "unseen", "stale"
    else:
        glyph, word = ("warn", "failing") if bookmark.state == BookmarkState.FAILING else ("ok", "fresh")
    is_listed = bookmark.listed_at is not None
    return KindFreshness(bookmark.kind, title, glyph, word, bookmark.heard_at, is_fresh, bookmark.message, is_listed)


def cluster_freshness(
    bookmarks: list[Bookmark], *, now: datetime, observer: Observer | None = None, added_at: datetime | None = None
) -> ClusterFreshness:
    by_kind = {bookmark.kind: bookmark for bookmark in bookmarks}
    kinds = tuple(of_kind(by_kind[kind], now=now) for kind in sorted(by_kind, key=_place))
    return ClusterFreshness(kinds, sight_of(bookmarks, observer, added_at=added_at, now=now))


def heard_of(row: Cluster, *, now: datetime) -> ClusterFreshness:
    """One query, and one more where the cluster was loaded without its observer."""
    observer = getattr(row, "observer", None)
    return cluster_freshness(
        list(Bookmark.objects.filter(cluster=row)), now=now, observer=observer, added_at=row.added_at
    )


def _place(kind: str) -> tuple[int, str]:
    known = list(NAMES)
    return (known.index(kind) if kind in known else len(known), kind)
