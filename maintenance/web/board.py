"""The board of open cases: a column for each state, blocked cases first."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import render

from edges.parts import part_response
from edges.requests import PersonRequest
from maintenance.lifecycle import FINAL, TITLES, CaseState
from maintenance.models import NodeCase
from maintenance.queries import facts_of
from maintenance.web.states import GLYPHS

SHOWN = 200  # open cases; all are in REST
ENDED_SHOWN = 20
COLUMNS = (CaseState.DRAIN_BLOCKED, *(state for state in CaseState if state not in {*FINAL, CaseState.DRAIN_BLOCKED}))


def board(request: PersonRequest) -> HttpResponse:
    return render(request, "maintenance/board.html", _context(request))


@part_response
def board_part(request: PersonRequest) -> HttpResponse:
    return render(request, "maintenance/_board.html", _context(request))


def _context(request: PersonRequest) -> dict[str, Any]:
    visible = NodeCase.objects.visible_to(request.user).select_related("cluster", "finding")
    cases = list(visible.open().order_by("state_since", "pk")[: SHOWN + 1])
    facts = facts_of(cases[:SHOWN])
    rows = [(case, facts[case.pk]) for case in cases[:SHOWN]]
    columns = [
        (TITLES[state], GLYPHS[state], [(case, its) for case, its in rows if case.state == state]) for state in COLUMNS
    ]
    return {
        "columns": [column for column in columns if column[2]],
        "total": len(rows),
        "is_more": len(cases) > SHOWN,
        "most": SHOWN,
        "ended": visible.filter(state__in=[state.value for state in FINAL]).order_by("-state_since")[:ENDED_SHOWN],
    }
