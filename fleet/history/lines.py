"""One timeline of a node, also of one that is gone: what was seen to change on it, what people wrote, and what the apps
above have to say. Pages and REST read this one.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from django.utils import timezone

from fleet.history.placements import Boards, boards_now, detail_of, how_it_ended, of_gpu, placements_of, what, which
from fleet.models import GoneNode, Gpu, Node, NodeNote, PodPlacement
from fleet.queries import timeline
from people.models import User

MOST = 100
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
NOTE, FINDING, PLAN, POD, GPUS = "note", "finding", "plan", "pod", "gpus"
# What a line is about: its title, and those kinds of `NodeEvent` that it stands for; none: an app above has its lines.
KINDS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "ready": ("Ready", ("ready",)),
    "driver": ("Driver and kernel", ("version", "upgrade")),
    "cordon": ("Cordons and holds", ("cordon", "label")),
    GPUS: ("GPUs", ("capacity",)),
    POD: ("Pods", ()),
    FINDING: ("Findings", ()),
    PLAN: ("Plans", ()),
    NOTE: ("Notes", ()),
}
WITHOUT_PODS = frozenset(KINDS) - {POD}  # where who is there is named besides: theirs would bury the rest
KIND_OF = {event: kind for kind, (_, events) in KINDS.items() for event in events}
GLYPHS = {"version": "changing", "upgrade": "changing", "cordon": "cordoned", "capacity": "warn"}
NodeKept = Node | GoneNode


@dataclass(frozen=True)
class TimelineLine:
    at: datetime
    kind: str  # of `KINDS`
    sentence: str
    who: str = ""  # blank: it was seen, and nothing says whose act it was
    href: str = ""  # the page of what did it
    glyph: str = "part"
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Span:
    """Which lines are asked for: those of a kind, from one instant on and before another, the newest of them."""

    kinds: frozenset[str] = frozenset()  # of `KINDS`; none: all
    since: datetime = LONG_AGO
    before: datetime | None = None  # None: up to now
    most: int = MOST
    gpu: Gpu | None = None  # without what is of other GPUs of its node only; None: of all of them

    def has(self, kind: str) -> bool:
        return not self.kinds or kind in self.kinds

    def of(self, column: str) -> dict[str, datetime]:
        """As a filter of rows by this column."""
        return {f"{column}__gte": self.since} | ({f"{column}__lt": self.before} if self.before else {})


# Of the apps above: each says what it has of a node that this person may see, the newest first and no more than asked.
MORE: list[Callable[[NodeKept, User, Span], Iterable[TimelineLine]]] = []


def lines_of(node: NodeKept, user: User, span: Span) -> list[TimelineLine]:
    """The newest first. Four queries, what `held_on` costs where pods hold GPUs, and what the apps above need."""
    lines, _ = page_of(node, user, span)
    return lines


def page_of(node: NodeKept, user: User, span: Span) -> tuple[list[TimelineLine], bool]:
    """Those lines, and whether there may be older ones.

    Those of one instant stay together, so that who asks for what was before the last one misses none: there may be a
    few less than the most, and where more than that are of one instant, more.
    """
    wider = replace(span, most=span.most + 1)
    found = [*_seen(node, wider), *_notes(node, wider), *_placements(node, wider)]
    found += [line for more in MORE for line in more(node, user, wider)]
    found.sort(key=lambda line: line.at, reverse=True)
    if len(found) <= span.most:
        return found, False
    cut = found[span.most].at
    return [line for line in found if line.at > cut] or [line for line in found if line.at == cut], True


def kinds_in(names: Collection[str]) -> frozenset[str]:
    """Those of them that there are."""
    return frozenset(names) & frozenset(KINDS)


def _seen(node: NodeKept, span: Span) -> Iterable[TimelineLine]:
    wanted = [event for event, kind in KIND_OF.items() if span.has(kind)]
    for row in timeline(node).filter(kind__in=wanted, **span.of("at"))[: span.most]:
        glyph = GLYPHS.get(row.kind, "part")
        yield TimelineLine(row.at, KIND_OF[row.kind], row.sentence, glyph=glyph, detail=row.detail)


def _placements(node: NodeKept, span: Span) -> Iterable[TimelineLine]:
    if not span.has(POD):
        return
    rows, now = placements_of(node), timezone.now()
    begun = rows.filter(**span.of("since"))
    ended = rows.filter(until__isnull=False, **span.of("until")).order_by("-until", "-pk")
    if span.gpu is None:
        first, last = list(begun[: span.most]), list(ended[: span.most])
        boards = boards_now(node, [*first, *last], now=now)
    else:
        boards = boards_now(node, list(rows.filter(until=None)), now=now)
        first, last = (of_gpu(some, span.gpu, boards, most=span.most) for some in (begun, ended))
    for row in first:
        sentence = f"{row} holds {what(row, boards)}.{_unknown(row, boards, span)}"
        yield TimelineLine(row.since, POD, sentence, detail=detail_of(row, boards))
    for row in last:
        if row.until is not None:
            sentence = f"{how_it_ended(row, boards)}{_unknown(row, boards, span)}"
            yield TimelineLine(row.until, POD, sentence, detail=detail_of(row, boards))


def _unknown(row: PodPlacement, boards: Boards, span: Span) -> str:
    return "" if span.gpu is None or which(row, boards) else " Nothing tells whether that was this GPU."


def _notes(node: NodeKept, span: Span) -> Iterable[TimelineLine]:
    if not span.has(NOTE):
        return
    rows = NodeNote.objects.filter(cluster=node.cluster_id, node_uid=node.uid, **span.of("at"))
    for row in rows[: span.most]:
        yield TimelineLine(row.at, NOTE, row.text, who=row.by)
