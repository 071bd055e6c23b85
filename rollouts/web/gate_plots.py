"""The plots of a plan's gates as SVG, drawn after the page."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from typing import Protocol

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone

from edges.parts import part_response
from edges.requests import PersonRequest
from rollouts.queries.gate_plots import gate_plots, newest_stages
from rollouts.queries.gate_strips import gate_strips
from rollouts.queries.plot_values import Point
from rollouts.web.visible_objects import plan_for

WIDTH, HEIGHT, MARGIN = 320.0, 120.0, 6.0
MOST_DOTS = 240


@dataclass(frozen=True)
class DrawnLimit:
    name: str
    value: float
    y: float


class DrawablePlot(Protocol):
    """Points by name with limits, the values of a baseline, and changes, to be drawn."""

    @property
    def unit(self) -> str: ...
    @property
    def points(self) -> Sequence[Point]: ...
    @property
    def limits(self) -> Sequence[tuple[str, float]]: ...
    @property
    def baseline(self) -> Sequence[float]: ...
    @property
    def changes(self) -> Sequence[datetime]: ...


@dataclass(frozen=True)
class DrawnPlot:
    plot: DrawablePlot
    lines: Sequence[str] = ()  # points of each polyline, in the order of the names
    names: Sequence[str] = ()  # of its points, sorted
    dots: Sequence[tuple[float, float, str, int]] = ()  # x, y, title and the number of its name, from 1
    limits: Sequence[DrawnLimit] = ()
    band: tuple[float, float] | None = None  # top and height
    lowest: float | None = None  # of the baseline
    highest: float | None = None
    changes: Sequence[float] = ()  # x of each
    begin: datetime | None = None
    end: datetime | None = None
    anchor: str = ""  # where the line of a gate leads; blank: to an earlier plot of the gate

    @property
    def newest(self) -> Point | None:
        return self.plot.points[-1] if self.plot.points else None


@part_response
def plots_part(request: PersonRequest, plan_id: int) -> HttpResponse:
    plan = plan_for(request.user, plan_id)
    now, stages = timezone.now(), newest_stages(plan)
    found = gate_plots(plan, stages, now=now)
    strips = list(gate_strips(plan, stages, now=now))
    first = {f"plot-{plot.stage.index}-{plot.gate.key}": plot for plot in reversed(found)}
    anchors = {id(plot): anchor for anchor, plot in first.items()}
    loud, quiet = (
        [replace(draw(plot), anchor=anchors.get(id(plot), "")) for plot in found if plot.is_quiet is one]
        for one in (False, True)
    )
    loud_strips, quiet_strips = ([strip for strip in strips if strip.is_quiet is one] for one in (False, True))
    shown = {"plan": plan, "plots": loud, "quiet": quiet, "strips": loud_strips, "quiet_strips": quiet_strips}
    shown["all_quiet"] = len(quiet) + len(quiet_strips)
    return render(request, "rollouts/plan/_gate_plots.html", shown)


def draw(plot: DrawablePlot) -> DrawnPlot:
    """Returns the plot in the coordinates of a box of 320 by 120. A plot without points has only its words."""
    if not plot.points:
        return DrawnPlot(plot)
    instants = [*(point.at for point in plot.points), *plot.changes]
    begin, end = min(instants), max(instants)
    values = [*(point.value for point in plot.points), *(value for _, value in plot.limits), *plot.baseline]
    low, high = min(*values, 0.0), max(*values, 0.0)
    span_s, height = max(1.0, (end - begin).total_seconds()), (high - low) or 1.0

    def x(at: datetime) -> float:
        return round(MARGIN + (at - begin).total_seconds() / span_s * (WIDTH - 2 * MARGIN), 1)

    def y(value: float) -> float:
        return round(HEIGHT - MARGIN - (value - low) / height * (HEIGHT - 2 * MARGIN), 1)

    names = sorted({point.name for point in plot.points})
    lowest, highest = (min(plot.baseline), max(plot.baseline)) if plot.baseline else (None, None)
    return DrawnPlot(
        plot,
        lines=[" ".join(f"{x(one.at)},{y(one.value)}" for one in its) for its in _by_name(plot.points)],
        names=names,
        dots=[
            (x(one.at), y(one.value), f"{one.name} {one.value:g} {plot.unit}".strip(), names.index(one.name) + 1)
            for one in plot.points
        ]
        if len(plot.points) <= MOST_DOTS
        else (),
        limits=[DrawnLimit(name, value, y(value)) for name, value in plot.limits],
        band=(y(highest), max(1.0, y(lowest) - y(highest))) if lowest is not None and highest is not None else None,
        lowest=lowest,
        highest=highest,
        changes=sorted({x(at) for at in plot.changes}),
        begin=begin,
        end=end,
    )


def _by_name(points: Iterable[Point]) -> list[list[Point]]:
    ordered = sorted(points, key=lambda point: (point.name, point.at))
    return [list(its) for _, its in groupby(ordered, key=lambda point: point.name)]
