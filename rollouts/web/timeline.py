"""One timeline of a node, also of one that is gone: what was seen to change on it, and what plans did to it."""

from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse

from edges.parts import part
from edges.requests import PersonRequest
from fleet.models import GoneNode, Node
from fleet.queries import timeline
from rollouts.models import Plan, PlanEvent
from rollouts.web.states import glyph_of, word_of

MOST = 100
GLYPHS = {"version": "changing", "ready": "part", "cordon": "cordoned", "upgrade": "changing", "capacity": "warn"}


@dataclass(frozen=True)
class TimelineEntry:
    at: datetime
    glyph: str
    sentence: str
    who: str = ""
    href: str = ""


@part
def node_timeline(request: PersonRequest, node_id: int) -> HttpResponse:
    node = Node.objects.visible_to(request.user).filter(pk=node_id).first() or get_object_or_404(
        GoneNode.objects.visible_to(request.user), node_id=node_id
    )
    lines = sorted([*_seen(node), *_planned(request, node)], key=lambda line: line.at, reverse=True)[:MOST]
    days = [{"grouper": day, "list": list(of_day)} for day, of_day in groupby(lines, key=lambda line: line.at.date())]
    return render(request, "fleet/_timeline.html", {"node_id": node_id, "cluster_id": node.cluster_id, "days": days})


def _seen(node: Node | GoneNode) -> list[TimelineEntry]:
    return [TimelineEntry(row.at, GLYPHS.get(row.kind, "part"), row.sentence) for row in timeline(node)[:MOST]]


def _planned(request: PersonRequest, node: Node | GoneNode) -> list[TimelineEntry]:
    plans = Plan.objects.visible_to(request.user).filter(cluster=node.cluster_id)
    events = PlanEvent.objects.filter(plan__in=plans, target__node_uid=node.uid).select_related("plan")[:MOST]
    return [
        TimelineEntry(
            at=event.at,
            glyph=glyph_of("target", event.to),
            sentence=f"{event.plan.title}: {word_of(event.to)}. {event.because}",
            who=event.actor,
            href=reverse("plan", args=[event.plan_id]),
        )
        for event in events
    ]
