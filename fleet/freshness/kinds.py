"""The freshness of one kind's rows, from its bookmark."""

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
    LIVE = "live"  # a complete list was written, with a recent update
    FAILING = "failing"  # recently updated, but the watch or the cluster does not answer now
    LOADING = "loading"  # the first list is incomplete
    STALE = "stale"  # the rows were right at the last update; they may be outdated
    FORBIDDEN = "forbidden"  # we lack the permission for this kind
    ABSENT = "absent"  # the cluster does not serve this kind
    NEVER = "never"  # no update yet


# Glyph and word of each state, as on pages.
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
LEFT_OUT = ("unseen", "not permitted")


@dataclass(frozen=True)
class KindFreshness:
    kind: str
    state: Freshness
    last_seen_at: datetime | None  # None: never
    age_s: float | None
    sentence: str
    rule: str = ""  # YAML of the missing RBAC rule; blank: allowed
    message: str = ""  # message of the API server or the transport
    is_failing: bool = False  # its watch does not answer now

    @property
    def name(self) -> str:
        return name_of(self.kind)

    @property
    def is_known(self) -> bool:
        """Tells whether the rows were ever complete; otherwise counts are unknown, not zero."""
        return self.state in {Freshness.LIVE, Freshness.FAILING, Freshness.STALE}

    @property
    def is_trouble(self) -> bool:
        """Tells whether a person should act: the kind exists here but is not read."""
        return self.glyph != "ok" and self.state is not Freshness.ABSENT and not self.is_left_out

    @property
    def is_left_out(self) -> bool:
        return self.state is Freshness.FORBIDDEN and is_optional(self.kind)

    @property
    def glyph(self) -> str:
        return self._label[0]

    @property
    def word(self) -> str:
        return self._label[1]

    @property
    def _label(self) -> tuple[str, str]:
        if self.is_left_out:
            return LEFT_OUT
        return NEVER_ANSWERED if self.is_failing and self.state is Freshness.NEVER else WORDS[self.state]


def freshness_of(bookmark: Bookmark, *, now: datetime) -> KindFreshness:
    state = _state_of(bookmark, now=now)
    last_seen_at = bookmark.last_seen_at
    age_s = max(0.0, (now - last_seen_at).total_seconds()) if last_seen_at else None
    rule = rule_for(bookmark.kind) if state is Freshness.FORBIDDEN else ""
    return KindFreshness(
        kind=bookmark.kind,
        state=state,
        last_seen_at=last_seen_at,
        age_s=age_s,
        sentence=_freshness_sentence(bookmark, state),
        rule=rule,
        message=bookmark.message,
        is_failing=bookmark.state == BookmarkState.FAILING,
    )


def as_failing(seen: KindFreshness) -> KindFreshness:
    """Returns the freshness in a cluster that does not answer, even if the kind's own watch seems fine."""
    if seen.state is not Freshness.LIVE:
        return seen
    sentence = (
        f"{seen.name} were last observed at {to_the_second(seen.last_seen_at)}, and their cluster does not answer now."
    )
    return replace(seen, state=Freshness.FAILING, sentence=sentence)


def never_listed(kind: str) -> KindFreshness:
    sentence = f"{name_of(kind)} were never read, because no worker has watched this cluster yet."
    return KindFreshness(kind, Freshness.NEVER, None, None, sentence)


def freshnesses(bookmarks: Iterable[Bookmark], *, now: datetime) -> list[KindFreshness]:
    """Returns the freshness of every kind that was ever requested, in the order of the table."""
    return [
        freshness_of(bookmark, now=now) for bookmark in sorted(bookmarks, key=lambda each: kind_sort_key(each.kind))
    ]


def freshness_by_kind(kinds: Iterable[KindFreshness]) -> dict[str, KindFreshness]:
    """Returns the freshness by kind; nodes and pods are always included."""
    return {NODES: never_listed(NODES), PODS: never_listed(PODS)} | {each.kind: each for each in kinds}


def kind_sort_key(kind: str) -> tuple[int, str]:
    """Returns the sort key of a kind; kinds of older workers come last."""
    return (PLACES.get(kind, len(PLACES)), kind)


def name_of(kind: str) -> str:
    return MIRRORED[kind].resource.title if kind in MIRRORED else kind


def is_optional(kind: str) -> bool:
    return kind in MIRRORED and MIRRORED[kind].resource.is_optional


def rule_for(kind: str) -> str:
    """Returns the rule that a ClusterRole needs to read a kind, as in deploy/rbac.

    The operator's ConfigMaps and exporters belong in a Role of its namespace, since a ClusterRole would open all
    others.
    """
    name, _, purpose = kind.partition(":")
    plural, _, group = name.partition(".")
    its = MIRRORED[kind].resource if kind in MIRRORED else None
    where = (
        f"# of a Role in {its.namespace}"
        if its and its.namespace
        else "# of a Role in the namespace of the GPU operator"
    )
    where = f"{where}\n" if purpose else ""
    verbs = "list, watch" if purpose else "get, list, watch"
    if plural == "pods/proxy":
        verbs = "get"  # a request, not a kind: it cannot be watched
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


def _freshness_sentence(bookmark: Bookmark, state: Freshness) -> str:
    name = name_of(bookmark.kind)
    reason = f" {bookmark.message}" if bookmark.message else ""
    match state:
        case Freshness.LIVE:
            return f"{name} are live.{_unread(bookmark)}"
        case Freshness.FAILING:
            return f"{name} were last observed at {to_the_second(bookmark.last_seen_at)}; no answer now.{reason}"
        case Freshness.LOADING:
            return f"{name} are being listed for the first time, since {to_the_second(bookmark.state_since)}.{reason}"
        case Freshness.STALE:
            return f"{name} were last observed at {to_the_second(bookmark.last_seen_at)}.{_listing(bookmark)}{reason}"
        case Freshness.FORBIDDEN:
            return f"{name} may not be read here since {to_the_second(bookmark.state_since)}.{reason}"
        case Freshness.ABSENT:
            return f"{name} are not installed in this cluster.{reason}"
        case Freshness.NEVER:
            return f"{name} were never observed.{reason}"


def _listing(bookmark: Bookmark) -> str:
    if bookmark.state != BookmarkState.LISTING:
        return ""
    return f" A new list was requested at {to_the_second(bookmark.state_since)} and is not complete."


def _unread(bookmark: Bookmark) -> str:
    """Returns a sentence about unreadable objects, without names, which only viewers of the whole cluster see."""
    number = len(bookmark.unread)
    if not number:
        return ""
    shown = either(number, "is shown in its last state", "are shown in their last state")
    or_more = " or more" if bookmark.has_more_unread else ""
    return f" {number}{or_more} of them cannot be read and {shown}, if any."
