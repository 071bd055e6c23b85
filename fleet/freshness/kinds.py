"""How old a picture is, and whether it is the cluster's at all: what pages and answers say of a bookmark."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from fleet.models import Bookmark, BookmarkState
from fleet.models.kinds import MIRRORED
from kube import resources
from wording.instants import to_the_second
from wording.numbers import either

NODES, PODS = resources.NODES.name, resources.PODS.name
PLACES: Mapping[str, int] = {kind: place for place, kind in enumerate(MIRRORED)}


class Freshness(StrEnum):
    LIVE = "live"  # a whole list was written, and something was heard lately
    FAILING = "failing"  # it was heard a moment ago; its watch, or its whole cluster, does not answer now
    LOADING = "loading"  # the first list is not complete
    STALE = "stale"  # the rows were the cluster's when it was last heard; they may not be now
    FORBIDDEN = "forbidden"  # our rights do not reach this kind
    ABSENT = "absent"  # the cluster does not serve this kind
    NEVER = "never"  # nothing was ever heard


# A shape and a word for each, as pages have them.
WORDS: Mapping[Freshness, tuple[str, str]] = {
    Freshness.LIVE: ("ok", "fresh"),
    Freshness.FAILING: ("warn", "failing"),
    Freshness.LOADING: ("waiting", "loading"),
    Freshness.STALE: ("unseen", "stale"),
    Freshness.FORBIDDEN: ("bad", "not permitted"),
    Freshness.ABSENT: ("unseen", "not installed"),
    Freshness.NEVER: ("waiting", "not asked for yet"),
}
NEVER_ANSWERED = ("bad", "failing")


@dataclass(frozen=True)
class KindFreshness:
    kind: str
    state: Freshness
    heard_at: datetime | None  # None: never
    age_s: float | None
    sentence: str
    rule: str = ""  # YAML of the RBAC rule that would allow it; blank: it is allowed
    message: str = ""  # what the API server, or the way there, had to say
    is_failing: bool = False  # its watch does not answer now

    @property
    def name(self) -> str:
        return name_of(self.kind)

    @property
    def is_known(self) -> bool:
        """Whether the rows ever were the cluster's: else there is nothing to count, which is not zero."""
        return self.state in {Freshness.LIVE, Freshness.FAILING, Freshness.STALE}

    @property
    def is_trouble(self) -> bool:
        """Whether somebody should look: it is not read, though this cluster has it."""
        return self.glyph != "ok" and self.state is not Freshness.ABSENT

    @property
    def glyph(self) -> str:
        return self._said[0]

    @property
    def word(self) -> str:
        return self._said[1]

    @property
    def _said(self) -> tuple[str, str]:
        return NEVER_ANSWERED if self.is_failing and self.state is Freshness.NEVER else WORDS[self.state]


def freshness_of(bookmark: Bookmark, *, now: datetime) -> KindFreshness:
    state = _state_of(bookmark, now=now)
    heard_at = bookmark.heard_at
    age_s = max(0.0, (now - heard_at).total_seconds()) if heard_at else None
    rule = rule_for(bookmark.kind) if state is Freshness.FORBIDDEN else ""
    return KindFreshness(
        kind=bookmark.kind,
        state=state,
        heard_at=heard_at,
        age_s=age_s,
        sentence=_sentence(bookmark, state),
        rule=rule,
        message=bookmark.message,
        is_failing=bookmark.state == BookmarkState.FAILING,
    )


def unheard(seen: KindFreshness) -> KindFreshness:
    """The same of one whose own watch may be well, in a cluster that does not answer: one that hangs tells it last."""
    if seen.state is not Freshness.LIVE:
        return seen
    sentence = (
        f"{seen.name} were last heard of at {to_the_second(seen.heard_at)}, and their cluster does not answer now."
    )
    return replace(seen, state=Freshness.FAILING, sentence=sentence)


def never_heard(kind: str) -> KindFreshness:
    sentence = f"{name_of(kind)} have never been seen: no worker has watched this cluster yet."
    return KindFreshness(kind, Freshness.NEVER, None, None, sentence)


def freshnesses(bookmarks: Iterable[Bookmark], *, now: datetime) -> list[KindFreshness]:
    """Of every kind that was ever asked for, in the order of the table."""
    return [freshness_of(bookmark, now=now) for bookmark in sorted(bookmarks, key=lambda each: place_of(each.kind))]


def named(kinds: Iterable[KindFreshness]) -> dict[str, KindFreshness]:
    """Nodes and pods are always in it: a page must be able to say that they have never been seen."""
    return {NODES: never_heard(NODES), PODS: never_heard(PODS)} | {each.kind: each for each in kinds}


def place_of(kind: str) -> tuple[int, str]:
    """Where it stands among the others: those that an older worker wrote of, and nobody knows any more, last."""
    return (PLACES.get(kind, len(PLACES)), kind)


def name_of(kind: str) -> str:
    return MIRRORED[kind].resource.title if kind in MIRRORED else kind


def rule_for(kind: str) -> str:
    """What to put under `rules` of a ClusterRole of ours so that a kind can be read, as deploy/rbac has it.

    The ConfigMaps and exporters of the operator are a Role's, in its namespace: a ClusterRole would open all there are.
    """
    name, _, purpose = kind.partition(":")
    plural, _, group = name.partition(".")
    where = "# of a Role in the namespace of the GPU operator\n" if purpose else ""
    verbs = "list, watch" if purpose else "get, list, watch"
    if plural == "pods/proxy":
        verbs = "get"  # a question, not a kind: there is nothing to watch
    return f'{where}- apiGroups: ["{group}"]\n  resources: [{plural}]\n  verbs: [{verbs}]\n'


def _state_of(bookmark: Bookmark, *, now: datetime) -> Freshness:
    if bookmark.state == BookmarkState.FORBIDDEN:
        return Freshness.FORBIDDEN
    if bookmark.state == BookmarkState.ABSENT:
        return Freshness.ABSENT
    if bookmark.is_fresh(now=now):
        return Freshness.FAILING if bookmark.state == BookmarkState.FAILING else Freshness.LIVE
    if bookmark.listed_at is not None:
        return Freshness.STALE
    return Freshness.NEVER if bookmark.state == BookmarkState.FAILING else Freshness.LOADING


def _sentence(bookmark: Bookmark, state: Freshness) -> str:
    name = name_of(bookmark.kind)
    reason = f" {bookmark.message}" if bookmark.message else ""
    match state:
        case Freshness.LIVE:
            return f"{name} are live.{_unread(bookmark)}"
        case Freshness.FAILING:
            return f"{name} were last heard of at {to_the_second(bookmark.heard_at)}, and are not heard now.{reason}"
        case Freshness.LOADING:
            return f"{name} are being listed for the first time, since {to_the_second(bookmark.state_since)}.{reason}"
        case Freshness.STALE:
            return f"{name} have not been seen since {to_the_second(bookmark.heard_at)}.{_listing(bookmark)}{reason}"
        case Freshness.FORBIDDEN:
            return f"{name} may not be read here since {to_the_second(bookmark.state_since)}.{reason}"
        case Freshness.ABSENT:
            return f"{name} are not installed in this cluster.{reason}"
        case Freshness.NEVER:
            return f"{name} have never been seen.{reason}"


def _listing(bookmark: Bookmark) -> str:
    if bookmark.state != BookmarkState.LISTING:
        return ""
    return f" A new list was asked for at {to_the_second(bookmark.state_since)} and is not complete."


def _unread(bookmark: Bookmark) -> str:
    """What of a kind is not as live as the rest of it. Names are for who sees the whole cluster: this is for all."""
    number = len(bookmark.unread)
    if not number:
        return ""
    shown = either(number, "is shown as it last was", "are shown as they last were")
    or_more = " or more" if bookmark.has_more_unread else ""
    return f" Not so {number}{or_more} that cannot be read, and {shown}, if ever."
