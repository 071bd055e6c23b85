"""The segments page: choose values, see counts, cross two facets, create a pool."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone

from edges.parts import part_response
from edges.requests import PersonRequest
from fleet.allocation.physical import Physical
from fleet.segments.facet_counts import Cross, FacetCounts, Segments, ValueCount, cross, segments_of
from fleet.segments.facets import BY_KEY, FACETS, Choice, Facet, words_of
from fleet.web.filters import NodeFilter, read_choice
from fleet.web.summary import alike_nodes, freshness_by_cluster, lines_for, not_counted, read_fleet
from people.rights import Permission, scope_of
from wording.numbers import count

SHOWN = 8  # values of a facet shown without unfolding
AT_MOST = 30
DEFAULT_AXES = ("product", "driver_version")


@dataclass(frozen=True)
class ValueLine:
    words: str
    nodes: int
    gpus: str
    gpus_in_full: str
    is_chosen: bool
    href: str  # toggles the value


@dataclass(frozen=True)
class Card:
    facet: Facet
    first: Sequence[ValueLine]
    more: Sequence[ValueLine]
    left: int  # values without a line


@dataclass(frozen=True)
class Cell:
    nodes: int
    gpus_in_full: str
    href: str


@dataclass(frozen=True)
class CrossTable:
    cross: Cross
    heads: Sequence[str]
    lines: Sequence[tuple[str, Sequence[Cell]]]


def segments(request: PersonRequest) -> HttpResponse:
    rows, columns = _axes(request)
    context = {
        "has_role": not scope_of(request.user, Permission.SEE).nowhere,
        "facets": FACETS,
        "rows": rows,
        "columns": columns,
        "hidden": [(key, value) for key, values in read_choice(request.GET).items() for value in values],
        **_segments(request),
    }
    return render(request, "fleet/segments/page.html", context)


@part_response
def segments_part(request: PersonRequest) -> HttpResponse:
    return render(request, "fleet/segments/_body.html", _segments(request))


def _segments(request: PersonRequest) -> dict[str, Any]:
    choice, axes = read_choice(request.GET), _axes(request)
    found = segments_of(request.user, choice, axes=axes)
    clusters = lines_for(request, now=timezone.now())
    read = read_fleet(request.user, alike_nodes(clusters), freshness_by_cluster(clusters))
    where = _Where(choice, axes)
    return {
        "found": found,
        "physical": Physical.of(found.physical),
        "chosen": [
            (BY_KEY[key].title, words_of(key, value), where.toggled(key, value))
            for key, values in choice.items()
            for value in values
        ],
        "cards": [_card(counts, where) for counts in found.facets if not counts.is_silent],
        "most": max((each.nodes for counts in found.facets for each in counts.values), default=0),
        "uncounted": [
            (facet.title, where.crossing(facet))
            for facet in FACETS
            if facet not in [each.facet for each in found.facets]
        ],
        "silent": [counts.facet for counts in found.facets if counts.is_silent],
        "table": _table(found, axes, where),
        "nodes_href": where.nodes(choice),
        "pool_href": f"{reverse('new-pool')}?{urlencode(choice, doseq=True)}" if choice else "",
        "misassigned": read.misassigned,
        "unseen": [line for line in clusters if line.freshness.has_begun and not line.freshness.is_fresh],
        "not_counted": not_counted(clusters),
        "clusters": clusters,
    }


@dataclass(frozen=True)
class _Where:
    """The builder of links; the choice is stored in the URL only."""

    choice: Choice
    axes: tuple[Facet, Facet]

    def toggled(self, key: str, value: str) -> str:
        values = self.choice.get(key, ())
        left = tuple(each for each in values if each != value) if value in values else (*values, value)
        query: dict[str, Any] = {**self.choice, key: left}
        if tuple(axis.key for axis in self.axes) != DEFAULT_AXES:
            query |= {"rows": self.axes[0].key, "columns": self.axes[1].key}
        return f"?{urlencode(query, doseq=True)}"

    def crossing(self, facet: Facet) -> str:
        return f"?{urlencode({**self.choice, 'rows': facet.key, 'columns': self.axes[1].key}, doseq=True)}"

    def nodes(self, choice: Choice) -> str:
        return f"{reverse('fleet')}?{NodeFilter(choice=choice).query()}#nodes"


def _card(counts: FacetCounts, where: _Where) -> Card:
    lines = [
        ValueLine(words_of(counts.facet.key, each.value), each.nodes, _gpus(each), _gpus_in_full(each), each.is_chosen,
             where.toggled(counts.facet.key, each.value))
        for each in sorted(counts.values, key=lambda each: not each.is_chosen)
    ]  # fmt: skip
    return Card(
        counts.facet,
        lines[:SHOWN],
        lines[SHOWN:AT_MOST],
        left=max(0, len(lines) - AT_MOST),
    )


def _gpus(counted: ValueCount) -> str:
    """Returns a short number; `8+`: 8, and nodes with an unknown number."""
    return "–" if counted.gpus is None else f"{counted.gpus}{'+' if counted.uncounted_nodes else ''}"


def _gpus_in_full(counted: ValueCount) -> str:
    gpus = [] if counted.gpus is None else [count(counted.gpus, "GPU")]
    uncounted = [f"{count(counted.uncounted_nodes, 'node')} with GPUs not counted"] if counted.uncounted_nodes else []
    return ", ".join([*gpus, *uncounted])


def _table(found: Segments, axes: tuple[Facet, Facet], where: _Where) -> CrossTable:
    rows, columns = axes
    table = cross(found.matching, rows, columns)

    def cells(row: str, line: Sequence[Any]) -> list[Cell]:
        return [
            Cell(
                each.nodes,
                _gpus_in_full(each),
                where.nodes({**found.choice, rows.key: (row,), columns.key: (each.value,)}),
            )
            for each in line
        ]

    lines = [(words_of(rows.key, line.value), cells(line.value, line.cells)) for line in table.lines]
    return CrossTable(table, [words_of(columns.key, head) for head in table.heads], lines)


def _axes(request: PersonRequest) -> tuple[Facet, Facet]:
    rows = BY_KEY.get(request.GET.get("rows", ""), BY_KEY[DEFAULT_AXES[0]])
    columns = BY_KEY.get(request.GET.get("columns", ""), BY_KEY[DEFAULT_AXES[1]])
    return rows, columns
