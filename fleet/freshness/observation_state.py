"""The observation state of a cluster as one word and one sentence, for pages, REST and rules.

The bookmark of its nodes represents the cluster. The first matching state counts.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from fleet.freshness.kinds import NODES, kind_sort_key, name_of
from fleet.models import Bookmark, BookmarkState, Cluster, Observer
from fleet.models.bookmark import STALE_AFTER, VOID
from fleet.models.observer import GRACE
from wording.durations import spell
from wording.instants import clock
from wording.lists import names


class ObservationState(StrEnum):
    FORBIDDEN = "forbidden"  # it answers, but its nodes may not be read
    NEVER = "never-reached"  # it has never answered
    CONNECTING = "connecting"  # the first list of its nodes is incomplete
    STALE = "stale"  # no update for 90 s
    FAILING = "failing"  # recently updated, but it does not answer now
    LIVE = "live"


GLYPHS = {
    ObservationState.FORBIDDEN: "bad",
    ObservationState.NEVER: "bad",
    ObservationState.CONNECTING: "waiting",
    ObservationState.STALE: "unseen",
    ObservationState.FAILING: "bad",
    ObservationState.LIVE: "ok",
}
TRIED_AGAIN = frozenset({ObservationState.NEVER, ObservationState.STALE, ObservationState.FAILING})
HELP = {
    ObservationState.FORBIDDEN: "Give Quarterdeck's user the rule that the cluster's page shows.",
    ObservationState.NEVER: (
        "Check its address from the workers' hosts, and its kubeconfig: `bin/manage doctor` tries a connection."
    ),
    ObservationState.STALE: "Check its API server and the network to it.",
    ObservationState.FAILING: "Check its API server and the network to it.",
}
NO_WORKER = "Check whether workers of the queue “observe” run, with a thread for each cluster."


@dataclass(frozen=True)
class ClusterObservation:
    state: ObservationState
    word: str  # `live`, `stale since 12:03:10`, `never reached`, `loading: nodes, pods (12 s)`
    loading: str  # kinds listed for the first time, with the duration; blank: none
    since: datetime | None  # None: live
    last_seen_at: datetime | None  # None: never
    is_known: bool  # whether its rows were ever complete; otherwise there is no data, not zero
    reason: str  # a sentence without the next attempt; blank: live
    again: str  # a sentence about the next attempt; blank: none scheduled
    watching: str  # a sentence about an unclaimed lease; blank: claimed
    action: str  # recommended action; blank: none
    unwatched_since: datetime | None  # start of an unclaimed lease that is due; None: claimed
    behind_since: datetime | None  # start of the observer's lag; None: not behind, or unwatched

    @property
    def is_live(self) -> bool:
        return self.state is ObservationState.LIVE

    @property
    def sentence(self) -> str:
        """Returns the complete message. Blank: live."""
        return " ".join(filter(None, (self.reason, self.again, self.watching)))

    @property
    def glyph(self) -> str:
        return GLYPHS[self.state]


def observation_of(
    bookmarks: Sequence[Bookmark], observer: Observer | None, *, added_at: datetime | None = None, now: datetime
) -> ClusterObservation:
    """Returns the state. `bookmarks` are all of the cluster."""
    nodes = next((each for each in bookmarks if each.kind == NODES), None)
    state = _state_of_cluster(nodes, bookmarks, observer, now=now)
    unwatched_since = unwatched_since_of(observer, added_at=added_at, now=now)
    since = _state_since(state, nodes, bookmarks, observer) or added_at
    loading = _loading(bookmarks, now=now)
    said = "" if state is ObservationState.LIVE else _state_sentence(state, nodes, since=since, now=now)
    return ClusterObservation(
        state=state,
        loading=loading,
        word=(loading if state is ObservationState.CONNECTING else "") or _state_word(state, since, now=now),
        since=None if state is ObservationState.LIVE else since,
        last_seen_at=nodes.last_seen_at if nodes else None,
        is_known=nodes is not None and nodes.is_known,
        reason=said,
        again=_next_try_sentence(observer, now=now) if state in TRIED_AGAIN else "",
        watching=_watching(unwatched_since, now),
        action=NO_WORKER if unwatched_since else HELP.get(state, ""),
        unwatched_since=unwatched_since,
        behind_since=behind_since_of(observer, now=now),
    )


def all_observations(*, now: datetime) -> dict[int, ClusterObservation]:
    """Returns the states by cluster key. Two queries."""
    marks: dict[int, list[Bookmark]] = defaultdict(list)
    for mark in Bookmark.objects.all():
        marks[mark.cluster_id].append(mark)
    clusters = Cluster.objects.select_related("observer").order_by()
    return {
        each.pk: observation_of(marks[each.pk], getattr(each, "observer", None), added_at=each.added_at, now=now)
        for each in clusters
    }


def _state_of_cluster(
    nodes: Bookmark | None, bookmarks: Sequence[Bookmark], observer: Observer | None, *, now: datetime
) -> ObservationState:
    if nodes is None:
        return ObservationState.NEVER if observer is not None and observer.failures else ObservationState.CONNECTING
    if nodes.state in VOID:
        return ObservationState.FORBIDDEN
    if nodes.listed_at is None or nodes.last_seen_at is None:
        return ObservationState.NEVER if nodes.state == BookmarkState.FAILING else ObservationState.CONNECTING
    if now - nodes.last_seen_at > STALE_AFTER:
        return ObservationState.STALE
    return ObservationState.FAILING if _is_failing(nodes, bookmarks) else ObservationState.LIVE


def _is_failing(nodes: Bookmark, bookmarks: Sequence[Bookmark]) -> bool:
    """Tells whether the watch of its nodes or of most kinds fails; a hanging watch notices last."""
    there = [each for each in bookmarks if each.state not in VOID]
    failing = sum(each.state == BookmarkState.FAILING for each in there)
    return nodes.state == BookmarkState.FAILING or 2 * failing > len(there)


def _state_since(
    state: ObservationState, nodes: Bookmark | None, bookmarks: Sequence[Bookmark], observer: Observer | None
) -> datetime | None:
    tried_since = observer.failing_since if observer else None
    if nodes is None:
        return tried_since
    if state is ObservationState.STALE:
        return nodes.last_seen_at
    if state is ObservationState.FAILING and nodes.state != BookmarkState.FAILING:
        return min(each.state_since for each in bookmarks if each.state == BookmarkState.FAILING)
    return tried_since or nodes.state_since if state is ObservationState.NEVER else nodes.state_since


def unwatched_since_of(observer: Observer | None, *, added_at: datetime | None, now: datetime) -> datetime | None:
    """Returns since when its lease is due but unclaimed. None: claimed, or waiting for its time."""
    if observer is None:
        return added_at if added_at is not None and now - added_at > GRACE else None
    due_at = max(observer.lease_until, observer.next_look_at or observer.lease_until)
    return due_at if now - due_at > GRACE else None


def behind_since_of(observer: Observer | None, *, now: datetime) -> datetime | None:
    """Returns since when its observer is behind. None: not behind, or unwatched."""
    return observer.behind_since if observer is not None and now - observer.lease_until <= GRACE else None


def _loading(bookmarks: Sequence[Bookmark], *, now: datetime) -> str:
    """Returns the kinds whose first list is incomplete, with the duration. Blank: none."""
    listing = [mark for mark in bookmarks if mark.state == BookmarkState.LISTING and mark.listed_at is None]
    if not listing:
        return ""
    listing.sort(key=lambda mark: kind_sort_key(mark.kind))
    kinds = names([name_of(mark.kind) for mark in listing], most=2).lower()
    return f"loading: {kinds} ({spell(now - min(mark.state_since for mark in listing))})"


def _state_word(state: ObservationState, since: datetime | None, *, now: datetime) -> str:
    """Returns the word. For failing, only the time of detection is known."""
    if state is ObservationState.STALE and since:
        return f"stale since {clock(since, now=now)}"
    if state is ObservationState.FAILING and since:
        return f"failing, noticed at {clock(since, now=now)}"
    return state.value.replace("-", " ")


def _state_sentence(state: ObservationState, nodes: Bookmark | None, *, since: datetime | None, now: datetime) -> str:
    reason = f" {nodes.message}" if nodes and nodes.message else ""
    match state:
        case ObservationState.FORBIDDEN:
            return f"Its nodes may not be read, since {_clock_utc(since, now)}.{reason}"
        case ObservationState.NEVER:
            return f"The cluster was never reached, since {_clock_utc(since, now)}.{reason}"
        case ObservationState.CONNECTING if nodes is None:
            return "No worker observes the cluster yet."
        case ObservationState.CONNECTING:
            return f"Its nodes are being listed for the first time.{reason}"
        case ObservationState.STALE:
            limit = int(STALE_AFTER.total_seconds())
            return f"Not observed since {_clock_utc(since, now)}: no data for more than {limit} s.{reason}"
        case _ if nodes is not None and nodes.state == BookmarkState.FAILING:
            # It stopped between these two times.
            last_seen, noticed = _clock_utc(nodes.last_seen_at, now), _clock_utc(since, now)
            return f"The cluster does not answer. Last observed at {last_seen}, noticed at {noticed}.{reason}"
        case _:
            return f"Most of its kinds do not answer: noticed at {_clock_utc(since, now)}.{reason}"


def _next_try_sentence(observer: Observer | None, *, now: datetime) -> str:
    if observer is None or observer.next_look_at is None or observer.next_look_at <= now:
        return ""
    return f"The next try is at {_clock_utc(observer.next_look_at, now)}."


def _watching(unwatched_since: datetime | None, now: datetime) -> str:
    return f"No worker watches the cluster since {_clock_utc(unwatched_since, now)}." if unwatched_since else ""


def _clock_utc(at: datetime | None, now: datetime) -> str:
    if at is None:
        return "the beginning"
    return f"{clock(at, now=now)} UTC"
