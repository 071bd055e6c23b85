"""The state of a node at a moment: "the node at 02:40"."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.conf import settings

from fleet.freshness.cluster import stale_since
from fleet.freshness.kinds import NODES, PODS
from fleet.history.facts import TITLES, Fact, changes_in, facts_at
from fleet.history.lines import POD, WITHOUT_PODS, NodeKept, Span, TimelineLine, page_of
from fleet.history.placements import boards_now, how_it_was, placed_at, seen_until_of
from fleet.models import GoneNode, Node
from fleet.queries import timeline
from people.models import User
from wording.instants import to_the_second
from wording.numbers import count

AROUND = timedelta(minutes=30)
MOST_AROUND = 100
COLUMNS = (*TITLES, "driver_unknown_since")
MOST_PODS = 1000  # a kubelet runs 110 by default


class NoSuchMoment(ValueError):
    """The refusal of a moment in the future."""


@dataclass(frozen=True)
class TrueThen:
    """A fact of an app above that was true at that moment."""

    kind: str  # of `lines.LINE_KINDS`
    sentence: str
    since: datetime
    until: datetime | None  # None: still true
    href: str = ""
    glyph: str = "part"
    seen_until: datetime | None = None  # last confirmation; None: still true, or its end was observed
    is_observation_gap: bool = False  # about a time without observation of the cluster


@dataclass(frozen=True)
class NodeMoment:
    at: datetime
    unseen: str  # reason why nothing is known; blank: known
    facts: Sequence[Fact] = ()
    true_then: Sequence[TrueThen] = ()  # pods; from apps above, open findings and active plans
    around: Sequence[TimelineLine] = ()  # within half an hour, newest first
    around_is_cut: bool = False  # whether lines were left out
    had_its_name: int | None = None  # if unknown: the page of another machine that had this name

    @property
    def not_seen(self) -> str:
        """Returns a sentence if the cluster was not observed at that moment. Blank: it was."""
        since = min((one.since for one in self.true_then if one.is_observation_gap), default=None)
        if since is None:
            return ""
        return (
            f"The cluster was not observed at that time, since {to_the_second(since)}. The values are from "
            "the last observation."
        )


# Of apps above: facts of the node at that moment that this person may see.
TRUE_THEN: list[Callable[[NodeKept, User, datetime], Iterable[TrueThen]]] = []


def moment_of(node: NodeKept, user: User, at: datetime, *, now: datetime) -> NodeMoment:
    """Returns the state. Nine queries, those of `allocations_on` for pods with GPUs, and those of apps above.

    If another machine had the node's name then, the answer names its page.

    :raises NoSuchMoment: with a sentence
    """
    if at > now:
        raise NoSuchMoment("This time is in the future.")
    if unseen := _unseen(node, at, now=now):
        return NodeMoment(at, unseen, had_its_name=_node_with_same_name(node, user, at))
    rows = timeline(node).order_by("at", "pk").values_list("at", "detail")
    current = None if isinstance(node, GoneNode) else {name: getattr(node, name) for name in COLUMNS}
    around, is_cut = _nearby_lines(node, user, at)
    return NodeMoment(
        at,
        "",
        facts=facts_at(at, changes_in(rows.iterator()), current),
        true_then=[*_pods_then(node, at, now=now), *(each for app in TRUE_THEN for each in app(node, user, at))],
        around=around,
        around_is_cut=is_cut,
    )


def _nearby_lines(node: NodeKept, user: User, at: datetime) -> tuple[list[TimelineLine], bool]:
    """Returns nearby lines, and whether some were left out. Half of them precede the moment, since causes come
    first.

    Costs as much as `lines_of`, twice if lines are left out.
    """
    span = Span(WITHOUT_PODS, since=at - AROUND, before=at + AROUND, most=MOST_AROUND)
    lines, is_cut = page_of(node, user, span)
    if not is_cut:
        return lines, False
    before, is_cut_before = page_of(node, user, replace(span, before=at, most=MOST_AROUND // 2))
    oldest = lines[-1].at
    return [*lines, *(line for line in before if line.at < oldest)], is_cut_before or oldest >= at


def _pods_then(node: NodeKept, at: datetime, *, now: datetime) -> Iterable[TrueThen]:
    rows = list(placed_at(node, at)[:MOST_PODS])
    boards, last_seen_at = boards_now(node, rows, now=now), stale_since(node.cluster_id, PODS, now=now)
    return [
        TrueThen(
            POD,
            how_it_was(row, at, boards, last_seen_at),
            row.since,
            row.until,
            seen_until=seen_until_of(row, last_seen_at),
        )
        for row in rows
    ]


def _unseen(node: NodeKept, at: datetime, *, now: datetime) -> str:
    if isinstance(node, GoneNode) and at >= node.gone_at:
        return f"The node had already left its cluster, at {to_the_second(node.gone_at)}."
    kept = timedelta(days=settings.KEEP_HISTORY_DAYS)
    if now - at > kept:
        return f"Timelines are stored for {count(kept.days, 'day')}. Earlier states are unknown."
    if (
        not isinstance(node, GoneNode)
        and (last_seen_at := stale_since(node.cluster_id, NODES, now=now))
        and at > last_seen_at
    ):
        return f"The cluster was last observed at {to_the_second(last_seen_at)}. Later states are unknown."
    begun = _first_observation(node)
    if begun is not None and at < begun:
        return f"The node was first observed at {to_the_second(begun)}. Earlier states are unknown."
    if isinstance(node, GoneNode) and not timeline(node).exists():
        return "Its timeline is no longer stored."
    return ""


def _first_observation(node: NodeKept) -> datetime | None:
    """Returns the first observation. None: its record was deleted, or never existed."""
    first = timeline(node).order_by("at", "pk").first()
    return first.at if first is not None and "ready" in first.detail else None


def _node_with_same_name(node: NodeKept, user: User, at: datetime) -> int | None:
    """Returns the page of another machine with this name. None: none that the person may see. At most three queries."""
    same = {"cluster": node.cluster_id, "name": node.name}
    left = GoneNode.objects.visible_to(user).filter(**same, gone_at__gt=at).exclude(uid=node.uid)
    other = (
        left.order_by("gone_at").first() or Node.objects.visible_to(user).filter(**same).exclude(uid=node.uid).first()
    )
    begun = None if other is None else _first_observation(other)
    if other is None or (begun is not None and at < begun):
        return None
    return other.node_id if isinstance(other, GoneNode) else other.pk
