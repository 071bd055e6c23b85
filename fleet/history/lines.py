"""The timeline of a node, also after it left: observed changes, notes, and entries of apps above. For pages and
REST."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import reduce
from operator import or_
from typing import Any

from django.db.models import Exists, OuterRef, Q
from django.db.models.expressions import Combinable
from django.utils import timezone

from fleet.history.event_pages import page_of_event, page_of_finding
from fleet.history.placements import (
    BoardsOfPods,
    boards_now,
    detail_of,
    gpu_indices,
    gpus_text,
    how_it_ended,
    of_gpu,
    placements_of,
)
from fleet.models import DomainEvent, GoneNode, Gpu, Node, NodeNote, PodPlacement
from fleet.queries import timeline
from people.models import User

MOST = 100
ID_CHARS = 19
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
RESET = "reset"  # of one GPU; its `detail` has the index as `gpu`
BOARD = "board"  # replaced boards; its `detail` has both UUIDs
NOTE, FINDING, PLAN, POD, GPUS, CASE, OPERATION = "note", "finding", "plan", "pod", "gpus", "case", "operation"
# The kinds of lines: title, and the kinds of `NodeEvent` they cover; none for lines of apps above.
LINE_KINDS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "ready": ("Ready and conditions", ("ready", "condition")),
    "driver": ("Driver and system", ("version", "boot", "upgrade")),
    "cordon": ("Cordons and holds", ("cordon", "label")),
    GPUS: ("GPUs", ("capacity", RESET, "reload", BOARD)),
    POD: ("Pods", ()),
    FINDING: ("Findings", ("finding",)),  # before findings were domain events
    PLAN: ("Plans", ()),
    CASE: ("Cases", ()),
    OPERATION: ("Operations", ()),
    NOTE: ("Notes", ()),
}
WITHOUT_PODS = frozenset(LINE_KINDS) - {POD}  # for places that show pods separately
KIND_OF = {event: kind for kind, (_, events) in LINE_KINDS.items() for event in events}
GLYPHS = {
    "version": "changing", "boot": "changing", "upgrade": "changing", "cordon": "cordoned", "condition": "warn",
    "capacity": "warn", RESET: "warn", BOARD: "changing",
}  # fmt: skip
NodeKept = Node | GoneNode


@dataclass(frozen=True)
class TimelineLine:
    at: datetime
    kind: str  # of `LINE_KINDS`
    sentence: str
    who: str = ""  # blank: observed in the cluster
    href: str = ""  # the page of its cause
    glyph: str = "part"
    detail: Mapping[str, Any] = field(default_factory=dict)
    position: "LinePosition" = (0, 0)

    @property
    def id(self) -> str:
        return "-".join(map(str, self.position))


LinePosition = tuple[int, int]  # among the lines of one instant: index in `TOLD_BY`, and key of the row
# The sources of lines, in order within one instant, last first.
LINE_SOURCES = ("xids", "plans", "cases", "operations", "events", "acts", "notes", "ended", "begun", "seen")


def position_in(teller: str, key: int) -> LinePosition:
    return LINE_SOURCES.index(teller), key


def position_of(id_: str) -> LinePosition | None:
    """Parses `TimelineLine.id`. None: invalid."""
    teller, _, key = id_.partition("-")
    is_one = len(id_) <= ID_CHARS and all(part.isascii() and part.isdigit() for part in (teller, key))
    return (int(teller), int(key)) if is_one else None


@dataclass(frozen=True)
class Span:
    """The requested lines: kinds, time range, and the maximum."""

    kinds: frozenset[str] = frozenset()  # of `LINE_KINDS`; empty: all
    since: datetime = LONG_AGO
    before: datetime | None = None  # None: until now
    below: LinePosition | None = None  # at the time `before`: only lines below this position; None: no such lines
    most: int = MOST
    gpu: Gpu | None = None  # only lines of this GPU and its node; None: of all GPUs

    def has(self, kind: str) -> bool:
        return not self.kinds or kind in self.kinds

    def of(self, column: str, teller: str, *, is_one_an_instant: bool = False) -> Q:
        """Returns the filter of a source's rows by this column. `is_one_an_instant`: its lines have no keys."""
        since = Q(**{f"{column}__gte": self.since})
        if self.before is None:
            return since
        until = Q(**{f"{column}__lt": self.before})
        if self.below is not None:
            number, key = position_in(teller, self.below[1])
            there = Q(**{column: self.before})
            if number < self.below[0]:
                until |= there
            elif number == self.below[0] and not is_one_an_instant:
                until |= there & Q(pk__lt=key)
        return since & until


# Of apps above: the keys of the findings about one GPU of the node, or about none.
OF_A_GPU: list[Callable[[Gpu], Collection[int]]] = []
# Of apps above: each returns its lines for a person, newest first, within the maximum.
MORE: list[Callable[[NodeKept, User, Span], Iterable[TimelineLine]]] = []


def lines_of(node: NodeKept, user: User, span: Span) -> list[TimelineLine]:
    """Returns the lines, newest first.

    Five queries, those of `allocations_on` for pods with GPUs, and those of apps above. One more for one GPU.
    """
    lines, _ = page_of(node, user, span)
    return lines


def page_of(node: NodeKept, user: User, span: Span) -> tuple[list[TimelineLine], bool]:
    """Returns the lines, and whether older ones exist.

    Lines of one instant stay together, so that the next page misses none; a page may be slightly shorter. If one
    instant has more lines than a page, the rest follow below the last position.
    """
    wider = replace(span, most=span.most + 1)
    findings = [key for of_gpu in OF_A_GPU for key in of_gpu(span.gpu)] if span.gpu and span.has(FINDING) else []
    found = [*_timeline_lines(node, wider, findings), *_events(node, wider, findings), *_notes(node, wider)]
    found += _placements(node, wider)
    found += lines_of_apps(node, user, wider)
    found.sort(key=lambda line: (line.at, line.position), reverse=True)
    if len(found) <= span.most:
        return found, False
    cut = found[span.most].at
    return [line for line in found if line.at > cut] or found[: span.most], True


def lines_of_apps(node: NodeKept, user: User, span: Span) -> list[TimelineLine]:
    """Returns the lines of apps above, unordered."""
    return [line for more in MORE for line in more(node, user, span)]


def kinds_in(names: Collection[str]) -> frozenset[str]:
    return frozenset(names) & frozenset(LINE_KINDS)


def _timeline_lines(node: NodeKept, span: Span, findings: Collection[int]) -> Iterable[TimelineLine]:
    wanted = [event for event, kind in KIND_OF.items() if span.has(kind)]
    rows = timeline(node).filter(span.of("at", "seen"), kind__in=wanted)
    if span.gpu is not None:
        rows = rows.filter(~Q(kind=RESET) | Q(detail__gpu=span.gpu.index))
        rows = rows.filter(~Q(kind=FINDING) | Q(detail__finding__in=findings))
    for row in rows[: span.most]:
        glyph, position = GLYPHS.get(row.kind, "part"), position_in("seen", row.pk)
        its_finding = row.detail.get("finding") if row.kind == FINDING else None
        href = page_of_finding(its_finding) if its_finding else ""
        yield TimelineLine(row.at, KIND_OF[row.kind], row.sentence, "", href, glyph, row.detail, position)


def _events(node: NodeKept, span: Span, findings: Collection[int]) -> Iterable[TimelineLine]:
    """Yields the domain events about the node: those of its findings and cases. One query."""
    wanted = [family for family in (FINDING, CASE) if span.has(family)]
    if not wanted:
        return
    about = reduce(or_, (Q(kind__startswith=f"{family}.") for family in wanted))
    rows = DomainEvent.objects.filter(about, span.of("at", "events"), cluster=node.cluster_id, node_uid=node.uid)
    if span.gpu is not None:
        keys = [f"finding/{key}" for key in findings]
        rows = rows.filter(~Q(kind__startswith="finding.") | Q(key__in=keys))
    for row in rows.order_by("-at", "-pk")[: span.most]:
        yield TimelineLine(
            row.at, row.family, row.sentence, row.actor, page_of_event(row), row.glyph, row.facts,
            position_in("events", row.pk),
        )  # fmt: skip


def without_event(node: NodeKept, family: str) -> Combinable:
    """Returns the filter of rows of an earlier version, which wrote no event about the node at their instant."""
    events = DomainEvent.objects.filter(kind__startswith=f"{family}.", cluster=node.cluster_id, node_uid=node.uid)
    return ~Exists(events.filter(at=OuterRef("at")))


def _placements(node: NodeKept, span: Span) -> Iterable[TimelineLine]:
    if not span.has(POD):
        return
    rows, now = placements_of(node), timezone.now()
    begun = rows.filter(span.of("since", "begun"))
    ended = rows.filter(span.of("until", "ended"), until__isnull=False).order_by("-until", "-pk")
    if span.gpu is None:
        first, last = list(begun[: span.most]), list(ended[: span.most])
        boards = boards_now(node, [*first, *last], now=now)
    else:
        there = list(rows.filter(until=None))
        boards = boards_now(node, there, now=now)
        first, last = (list(of_gpu(some, span.gpu, there, boards)[: span.most]) for some in (begun, ended))
    for row in first:
        sentence = f"{row} has {gpus_text(row, boards)}.{_unknown(row, boards, span)}"
        yield TimelineLine(
            row.since, POD, sentence, detail=detail_of(row, boards), position=position_in("begun", row.pk)
        )
    for row in last:
        if row.until is not None:
            sentence = f"{how_it_ended(row, boards)}{_unknown(row, boards, span)}"
            yield TimelineLine(
                row.until, POD, sentence, detail=detail_of(row, boards), position=position_in("ended", row.pk)
            )


def _unknown(row: PodPlacement, boards: BoardsOfPods, span: Span) -> str:
    its = gpu_indices(row, boards)
    if span.gpu is None or span.gpu.index in its:
        return ""
    return (
        " It is unknown whether this GPU was one of the other GPUs."
        if its
        else " It is unknown whether it had this GPU."
    )


def _notes(node: NodeKept, span: Span) -> Iterable[TimelineLine]:
    if not span.has(NOTE):
        return
    rows = NodeNote.objects.filter(span.of("at", "notes"), cluster=node.cluster_id, node_uid=node.uid)
    for row in rows[: span.most]:
        yield TimelineLine(row.at, NOTE, row.text, who=row.by, position=position_in("notes", row.pk))
