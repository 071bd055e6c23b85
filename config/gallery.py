"""The component gallery: every part of a page in every state, light and dark. On development settings only."""

from types import SimpleNamespace

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from fleet.freshness.observation_state import GLYPHS as OBSERVATION_GLYPHS
from fleet.states.node import TITLES
from fleet.web.states import GLYPHS as NODE_GLYPHS
from fleet.web.states import POD_GLYPHS
from health.lifecycle import FindingState
from health.rules.base import Severity
from rollouts.web.states import GLYPHS as PLAN_GLYPHS
from wording.reports import EvidenceItem

THEMES = ("light", "dark")
SHAPES = (
    "ok", "part", "warn", "bad", "cordoned", "changing", "held", "unseen", "unknown", "waiting", "stopped",
)  # fmt: skip
COLOURS = ("ok", "warn", "bad", "move", "hold", "allocated", "idle", "accent")
EVIDENCE = (EvidenceItem("Temperature", 86, "°C"), EvidenceItem("Xid", 79))
STEPS = ("Cordon the node: kubectl cordon gpu-0", "Reboot the node.")
SIZES = ("small", "text", "large", "figure", "title")


def gallery(request: HttpRequest) -> HttpResponse:
    """:raises Http404: on any settings but those of development"""
    if not settings.HAS_GALLERY:
        raise Http404
    return render(request, "gallery/page.html", _context())


def _context() -> dict[str, object]:
    return {
        "themes": THEMES,
        "shapes": SHAPES,
        "colours": COLOURS,
        "sizes": SIZES,
        "evidence": EVIDENCE,
        "steps": STEPS,
        "now": timezone.now(),
        "nodes": [(title, NODE_GLYPHS[state]) for state, title in TITLES.items()],
        "pods": [(state.value, glyph) for state, glyph in POD_GLYPHS.items()],
        "observations": [SimpleNamespace(glyph=glyph, word=state.value) for state, glyph in OBSERVATION_GLYPHS.items()],
        "plan_states": [(kind, list(glyphs)) for kind, glyphs in PLAN_GLYPHS.items()],
        "findings": [
            SimpleNamespace(state=state, severity=severity, resolved_at=state == FindingState.RESOLVED)
            for state in FindingState
            for severity in Severity
        ],
    }
