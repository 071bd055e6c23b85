"""How old what a page shows of a cluster is, and in which words it says so."""

from dataclasses import dataclass
from datetime import datetime

from fleet.freshness import NAMES, name_of
from fleet.models import Bookmark, BookmarkState
from fleet.models.observer import STALE_AFTER

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
    """What is heard of one cluster. Its nodes' bookmark stands for the whole: without nodes nothing can be judged."""

    kinds: tuple[KindFreshness, ...]
    heard_at: datetime | None
    is_fresh: bool
    has_begun: bool
    sentence: str  # why it is not fresh; blank where it is

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


def of_cluster(bookmarks: list[Bookmark], *, now: datetime) -> ClusterFreshness:
    by_kind = {bookmark.kind: bookmark for bookmark in bookmarks}
    kinds = tuple(of_kind(by_kind[kind], now=now) for kind in sorted(by_kind, key=_place))
    nodes = by_kind.get("nodes")
    if nodes is None:
        return ClusterFreshness(kinds, None, is_fresh=False, has_begun=False, sentence="Nobody observes it yet.")
    return ClusterFreshness(
        kinds=kinds,
        heard_at=nodes.heard_at,
        is_fresh=nodes.is_fresh(now=now),
        has_begun=nodes.listed_at is not None,
        sentence=_sentence(nodes, now=now),
    )


def _sentence(nodes: Bookmark, *, now: datetime) -> str:
    if nodes.is_fresh(now=now):
        return ""
    reason = f" {nodes.message}" if nodes.message else ""
    if nodes.state in GONE:
        return f"Its nodes cannot be read: {GONE[BookmarkState(nodes.state)]}.{reason}"
    if nodes.heard_at is None:
        return f"It was never heard of.{reason}"
    if nodes.listed_at is None:
        return f"Its first list is not complete.{reason}"
    limit = int(STALE_AFTER.total_seconds())
    return f"Not seen since {nodes.heard_at:%H:%M:%S} UTC: nothing heard for more than {limit} s.{reason}"


def _place(kind: str) -> tuple[int, str]:
    known = list(NAMES)
    return (known.index(kind) if kind in known else len(known), kind)
