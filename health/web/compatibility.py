"""The compatibility of versions in a cluster or on a node for their pages: the worst first, each with its source."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone

from edges.parts import part_response
from edges.requests import PersonRequest
from fleet.freshness.cluster import load_cluster_freshness
from fleet.models import Node
from fleet.web.node_lookup import node_for
from fleet.web.summary import line_for
from gpu.compatibility import Support, Verdict, the_matrix
from health.stack.combinations import Comparison, Line, compare_combinations, compare_within_cluster, is_compared

WORDS: dict[Support, tuple[str, str]] = {
    Support.KNOWN_BAD: ("bad", "known to fail"),
    Support.UNSUPPORTED: ("warn", "not supported"),
    Support.UNKNOWN: ("unknown", "not known"),
    Support.DEPRECATED: ("part", "ending"),
    Support.SUPPORTED: ("ok", "supported"),
}
THREAD = re.compile(r"https://github\.com/(?P<repository>[\w.-]+/[\w.-]+)/(?:issues|pull)/(?P<number>\d+)")
REPOSITORY = re.compile(r"(?P<repository>[\w.-]+/[\w.-]+):(?P<path>[\w./-]+)@(?P<ref>[\w.-]+)")


@dataclass(frozen=True)
class AnswerLine:
    glyph: str
    word: str
    verdict: Verdict
    nodes: int | None  # None: it is about one node
    href: str
    source: str  # short

    @property
    def is_fine(self) -> bool:
        return self.verdict.answer is Support.SUPPORTED


@dataclass(frozen=True)
class AnswerCard:
    wrong: Sequence[AnswerLine]  # the worst first
    fine: Sequence[AnswerLine]
    nodes: int
    groups: int
    is_truncated: bool
    read_on: date
    newest: str  # release of the operator in the matrix

    @property
    def glyph(self) -> str:
        return self.wrong[0].glyph if self.wrong else "ok"


@part_response
def cluster_compatibility_part(request: PersonRequest, cluster_id: int) -> HttpResponse:
    now = timezone.now()
    line = line_for(request, cluster_id, now=now)
    _, compared = compare_combinations(line.cluster, user=request.user, today=now.date())
    shown = {"freshness": line.freshness, "compatibility": of_cluster(compared)}
    return render(request, "health/cluster/_compatibility.html", shown)


@part_response
def node_compatibility_part(request: PersonRequest, node_id: int) -> HttpResponse:
    now = timezone.now()
    row = node_for(request, node_id)
    shown = {"node": row, "freshness": load_cluster_freshness(row.cluster, now=now)}
    return render(request, "health/node/_compatibility.html", shown | of_node(row, user=request.user, today=now.date()))


def of_cluster(found: Comparison) -> AnswerCard:
    return _card(
        [_answer_line(line) for line in found.lines], found.nodes, found.groups, is_truncated=found.is_truncated
    )


@dataclass(frozen=True)
class NodeCard:
    """Results for one node that do not apply to most GPU nodes of its cluster. The others are on the cluster's page."""

    own: Sequence[AnswerLine]  # the worst first
    shared: int  # answers that are not `supported`, and true of most of them
    read_on: date


def of_node(node: Node, *, user: Any, today: date) -> dict[str, Any]:
    """Returns the context of the node page's part, with six queries; empty for a node without NVIDIA GPUs."""
    verdicts = compare_within_cluster(node, user=user, today=today)
    wrong = [each for each in verdicts if each.verdict.answer is not Support.SUPPORTED]
    own = [_answer_line(Line(each.verdict, 0), is_of_one=True) for each in wrong if not each.is_common]
    card = NodeCard(own, len(wrong) - len(own), the_matrix().read_on)
    return {"compatibility": card if is_compared(node) else None}


def _card(lines: Iterable[AnswerLine], nodes: int, groups: int, *, is_truncated: bool) -> AnswerCard:
    every = list(lines)
    matrix = the_matrix()
    return AnswerCard(
        wrong=[line for line in every if not line.is_fine],
        fine=[line for line in every if line.is_fine],
        nodes=nodes,
        groups=groups,
        is_truncated=is_truncated,
        read_on=matrix.read_on,
        newest=matrix.newest.version,
    )


def _answer_line(line: Line, *, is_of_one: bool = False) -> AnswerLine:
    glyph, word = WORDS[line.verdict.answer]
    href, short = source_of(line.verdict.source)
    return AnswerLine(glyph, word, line.verdict, None if is_of_one else line.nodes, href, short)


def source_of(text: str) -> tuple[str, str]:
    if found := REPOSITORY.fullmatch(text):
        href = f"https://github.com/{found['repository']}/blob/{found['ref']}/{found['path']}"
        return href, found["path"].rpartition("/")[2]
    if found := THREAD.fullmatch(text):
        return text, f"{found['repository'].rpartition('/')[2]} #{found['number']}"
    return text, text.removeprefix("https://").partition("/")[0]
