"""The 72-hour strip of a node's or GPU's page: one bar per hour, as high as its utilisation.

Grey means no telemetry, or unknown utilisation.
"""

from dataclasses import dataclass
from typing import Any

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone

from edges.parts import part_response
from edges.requests import PersonRequest
from fleet.models import Gpu, Node
from fleet.web.node_lookup import node_for
from health.inbox.comparable_gpus import comparable_gpu_of
from health.inbox.comparable_nodes import comparable_node_of
from health.inbox.hours import HOURS, LEAST_H, NodeHour, hours_of
from wording.instants import to_the_minute
from wording.lists import names

TALL, WIDE, GAP = 40, 10, 2  # pixels of a bar
LOW = 2  # height of an idle hour, so that it is visible


@dataclass(frozen=True)
class Bar:
    hour: NodeHour
    x: int
    height: int

    @property
    def y(self) -> int:
        return TALL - self.height

    @property
    def look(self) -> str:
        if self.hour.severity:
            return self.hour.severity
        if not self.hour.devices:
            return "silent"
        return "unknown" if self.hour.load is None else "reporting"

    @property
    def words(self) -> str:
        found = [finding.title for finding in self.hour.findings]
        said = f"{to_the_minute(self.hour.hour)}. {self.hour.sentence}"
        return f"{said} Findings: {names(found, most=3)}" if found else said


@part_response
def node_hours_part(request: PersonRequest, node_id: int) -> HttpResponse:
    row = node_for(request, node_id)
    return render(
        request, "health/node/_hours.html", {"node": row, **_strip_context(hours_of(row, now=timezone.now()))}
    )


@part_response
def gpu_hours_part(request: PersonRequest, node_id: int, index: int) -> HttpResponse:
    gpu = get_object_or_404(Gpu.objects.visible_to(request.user).at(node_id, index))
    strip = _strip_context(hours_of(gpu.node, gpu=gpu, now=timezone.now()))
    return render(request, "health/node/_hours.html", {"node": gpu.node, "gpu": gpu, **strip})


def _strip_context(hours: list[NodeHour]) -> dict[str, Any]:
    bars = [Bar(hour, place * (WIDE + GAP), _height(hour)) for place, hour in enumerate(hours)]
    known = [hour for hour in hours if hour.devices]
    allocated = [hour.allocated_h for hour in known]
    busy = [hour.busy_h for hour in known if hour.busy_h is not None]
    unknown_h = sum(hour.unknown_h for hour in known)
    xids = [hour.xids for hour in known if hour.xids is not None]
    return {
        "bars": bars,
        "tall": TALL,
        "wide": WIDE,
        "long": HOURS * (WIDE + GAP),
        "reporting": len(known),
        "asked": len(hours),
        "busy_h": sum(busy) if busy else None,
        "unknown_h": unknown_h if unknown_h >= LEAST_H else 0,
        "allocated_h": None if None in allocated else sum(allocated),
        "seen_h": sum(hour.seen_h for hour in known),
        "hottest": max((hour.hottest for hour in known if hour.hottest is not None), default=None),
        "xids": sum(xids) if xids else None,
        "with_findings": sum(1 for hour in hours if hour.findings),
    }


def _height(hour: NodeHour) -> int:
    return TALL if hour.load is None else max(LOW, round(TALL * min(1.0, hour.load)))


@part_response
def comparable_node_part(request: PersonRequest, node_id: int) -> HttpResponse:
    row = get_object_or_404(Node.objects.visible_to(request.user), pk=node_id)
    comparable = comparable_node_of(row, request.user, now=timezone.now())
    return render(request, "health/node/_comparable_node.html", {"name": row.name, "comparable": comparable})


@part_response
def comparable_gpu_part(request: PersonRequest, node_id: int, index: int) -> HttpResponse:
    row = get_object_or_404(Gpu.objects.visible_to(request.user).at(node_id, index))
    comparable = comparable_gpu_of(row, request.user, now=timezone.now())
    if comparable.gpu is not None and comparable.gpu.node_id == row.node_id:
        name, other = f"GPU {row.index}", f"GPU {comparable.gpu.index}"
    else:
        name, other = str(row), str(comparable.gpu or "")
    return render(request, "health/node/_comparable_gpu.html", {"name": name, "other": other, "comparable": comparable})
