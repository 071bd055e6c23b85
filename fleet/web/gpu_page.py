"""The page of one GPU: identity, sharing, and present and past users. Apps above add telemetry and findings."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone

from edges.parts import part_response
from edges.requests import PersonRequest
from fleet.allocation.devices import offered_on
from fleet.freshness.cluster import load_cluster_freshness
from fleet.history.lines import Span
from fleet.history.placements import GpuPlacement, on_gpu
from fleet.messages.numbers import numbers_of
from fleet.models import Gpu, Observer
from fleet.queries import gpu_at, lines_of, see_gpu
from fleet.web import states
from fleet.web.node_history import timeline_of
from fleet.web.node_page import gone
from gpu.resources import explain
from people.models import User

SPAN = timedelta(hours=72)
MOST = 200  # placements
WIDE = 864  # width of the strip of hours: 12 per hour
TALL, APART = 10, 3
MOST_LANES = 16


@dataclass(frozen=True)
class PlacementBar:
    """A placement in the drawing: `x` and `width` of the confirmed time, `tail` of the unconfirmed time."""

    placement: GpuPlacement
    x: float
    width: float
    tail: float
    lane: int

    @property
    def y(self) -> int:
        return self.lane * (TALL + APART)

    @property
    def tail_x(self) -> float:
        return self.x + self.width


def gpu(request: PersonRequest, node_id: int, index: int) -> HttpResponse:
    row = gpu_at(node_id, index, user=request.user)
    if row is None:
        return gone(request, node_id, template="fleet/node/gone.html")
    cluster = row.node.cluster_id
    seen = {"seq": numbers_of({cluster: Observer.batch_of(cluster)})}
    if not row.is_listed:
        return render(request, "fleet/gpu/unlisted.html", {**seen, **_unlisted(row)})
    return render(request, "fleet/gpu/page.html", {**seen, **_gpu(row, user=request.user, now=timezone.now())})


@part_response
def gpu_part(request: PersonRequest, node_id: int, index: int) -> HttpResponse:
    row = gpu_at(node_id, index, user=request.user)
    if row is None:
        return gone(request, node_id, template="fleet/gpu/_gone.html")
    if not row.is_listed:
        return render(request, "fleet/gpu/_unlisted.html", _unlisted(row))
    return render(request, "fleet/gpu/_body.html", _gpu(row, user=request.user, now=timezone.now()))


@part_response
def placements_part(request: PersonRequest, node_id: int, index: int) -> HttpResponse:
    row, now = _visible(request, node_id, index), timezone.now()
    found = on_gpu(row, since=now - SPAN, now=now, most=MOST + 1)
    placements = found[:MOST]
    bars = bars_of(placements, begin=now - SPAN, end=now)
    shown = {
        "gpu": row,
        "placements": placements,
        "is_more": len(found) > MOST,
        "bars": bars,
        "not_drawn": len(placements) - len(bars),
        "unknown": sum(not each.is_known for each in placements),
        "wide": WIDE,
        "bar_height": TALL,
        "tall": max((bar.y + TALL for bar in bars), default=0),
        "knows_pods": load_cluster_freshness(row.node.cluster, now=now).knows_pods,
    }
    return render(request, "fleet/gpu/_placements.html", shown)


@part_response
def timeline_part(request: PersonRequest, node_id: int, index: int) -> HttpResponse:
    row = _visible(request, node_id, index)
    shown = timeline_of(row.node, node_id, request, Span(gpu=row))
    return render(request, "fleet/gpu/_timeline.html", {"gpu": row, **shown})


def bars_of(placements: list[GpuPlacement], *, begin: datetime, end: datetime) -> list[PlacementBar]:
    """Assigns each placement to the first free lane; those with unknown GPUs are below. Pure."""
    bars: list[PlacementBar] = []
    free: list[tuple[datetime, bool]] = []  # by lane: end, and kind
    for each in sorted(placements, key=lambda one: (not one.is_known, one.row.since, one.row.pk)):
        since, until = max(each.row.since, begin), min(each.row.until or end, end)
        seen = min(until, max(each.seen_until or until, since))
        lane = next((at for at, (to, kind) in enumerate(free) if kind == each.is_known and to <= since), len(free))
        if lane == MOST_LANES:
            continue
        free[lane : lane + 1] = [(until, each.is_known)]
        width = max(_bar_width(seen - since), 1.5)
        bars.append(PlacementBar(each, _bar_width(since - begin), width, _bar_width(until - seen), lane))
    return bars


def _bar_width(lasts: timedelta) -> float:
    return round(WIDE * (lasts / SPAN), 1)


def _visible(request: PersonRequest, node_id: int, index: int) -> Gpu:
    return get_object_or_404(Gpu.objects.visible_to(request.user).at(node_id, index))


def _unlisted(row: Gpu) -> dict[str, Any]:
    """Renders a GPU that a finding or exporter names but its node does not list."""
    return {"gpu": row, "node": row.node, "number": Gpu.objects.filter(node=row.node).count()}


def _gpu(row: Gpu, *, user: User, now: datetime) -> dict[str, Any]:
    node = row.node
    detail = see_gpu(row, user=user, now=now)
    allocated, freshness, uuid = detail.allocated, detail.cluster_freshness, detail.allocated.uuid
    offered = offered_on(node.cluster_id, [node.name]).get(node.name)
    devices = offered.devices if offered else ()
    unhealthy = node.unhealthy_of(row.index, uuid)
    return {
        "gpu": row,
        "node": node,
        "pools": detail.pools,
        "allocated": allocated,
        "uuid": uuid,
        "address": next((each.address for each in devices if uuid and each.board == uuid and each.address), ""),
        "ways": list(dict.fromkeys(explain(line.way).title for line in lines_of(node) if line.expected is not None)),
        "unhealthy": unhealthy,
        "taints": [taint for taint in allocated.taints if not any(taint in sentence for sentence in unhealthy)],
        "seen": states.state_of(node, is_live=freshness.is_fresh),
        "freshness": freshness,
        "knows_pods": freshness.knows_pods,
    }
