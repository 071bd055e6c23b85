"""The GPU stack of one node for its page: an icon and a word for each operand's state, and the driver."""

from dataclasses import dataclass
from datetime import datetime

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone

from edges.parts import part_response
from edges.requests import PersonRequest
from fleet.freshness.cluster import load_cluster_freshness
from fleet.web.node_lookup import node_for
from health.stack import NodeStack, OperandOnNode, checklist_of, has_checklist, read_stack
from health.stack.causes import Weight
from wording.instants import clock

GLYPHS = {Weight.WRONG: "bad", Weight.WAITING: "waiting", Weight.CHOSEN: "held", Weight.UNKNOWN: "unknown"}


@dataclass(frozen=True)
class NodeOperandLine:
    row: OperandOnNode
    glyph: str
    word: str
    is_repeated: bool  # the same cause and its steps are shown above


@part_response
def node_stack_part(request: PersonRequest, node_id: int) -> HttpResponse:
    now = timezone.now()
    row = node_for(request, node_id)
    freshness, stack = load_cluster_freshness(row.cluster, now=now), read_stack(row, now=now)
    lines = lines_of(stack, as_of=freshness.pods_as_of, now=now)
    checklist = checklist_of(row, stack) if has_checklist(row) else []
    shown = {"node": row, "freshness": freshness, "stack": lines, "versions": stack.driver, "checklist": checklist}
    return render(request, "health/node/_stack.html", shown)


def lines_of(stack: NodeStack, *, as_of: datetime | None = None, now: datetime) -> list[NodeOperandLine]:
    """Returns the lines. `as_of` is the time of the last observation if it is not current."""
    lines, told = [], set()
    for row in stack.operands:
        cause = row.cause
        glyph, word = _glyph_and_state(row)
        if as_of is not None:
            glyph, word = "unseen", f"was {word}, as of {clock(as_of, now=now)}"
        lines.append(NodeOperandLine(row, glyph, word, is_repeated=cause is not None and cause.sentence in told))
        told.add(row.reason)
    return lines


def _glyph_and_state(row: OperandOnNode) -> tuple[str, str]:
    if row.is_silent:
        return "unknown", f"unknown, last {row.status or ('ready' if row.is_ready else 'not ready')}"
    if row.cause is None:
        return "ok", "ready"
    if row.is_ready:
        return ("bad", "ready, but") if row.cause.weight is Weight.WRONG else ("changing", "at work")
    if row.cause.key == "leaving":
        return "changing", "terminating"
    if row.cause.weight is Weight.CHOSEN:
        return GLYPHS[Weight.CHOSEN], "not wanted"
    if row.cause.weight is Weight.UNKNOWN:
        return GLYPHS[Weight.UNKNOWN], "not known"
    if not row.pod:
        return GLYPHS[row.cause.weight], "paused" if row.cause.key == "paused" else "no pod here"
    said = row.status if row.status != "Running" else ""
    return GLYPHS[row.cause.weight], said or ("not ready" if row.cause.weight is Weight.WRONG else "waiting")
