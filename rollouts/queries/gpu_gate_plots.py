"""The plots of the gates on GPU telemetry: one changed node, from before its change until now, with its own past."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import chain

from fleet.models import Node
from gpu.conditions import is_applications
from health.inbox.plots import BITS, limits_for
from health.sources.history import XID, PlotLimit, TelemetryHistory, drawn_of
from health.telemetry.metrics import DCGM, EXPORTERS, METRICS, MetricKind
from health.telemetry.prometheus.ranges import PlotSpan
from rollouts.gates.base import Answer
from rollouts.gates.findings import NewFindings
from rollouts.lifecycle import PLAN_FINAL
from rollouts.models import Plan, Stage, Target
from rollouts.queries.plot_values import GatePlot, Point

BEFORE = timedelta(minutes=30)
LONGEST = timedelta(hours=6)


def gpu_plots(plan: Plan, stage: Stage, changes: Sequence[datetime], *, now: datetime) -> Iterator[GatePlot]:
    """Yields a plot for each gate on GPU telemetry. Seven queries and at most one Prometheus query; none without one.

    It shows the node that a gate names, else the one that changed last.
    """
    gates = [gate for gate in stage.gates if isinstance(gate, NewFindings) and gate.measured_by]
    if not gates:
        return
    empty = [GatePlot(gate, stage, "", "", changes=changes, why_empty="No node has changed yet.") for gate in gates]
    target = _shown_target(stage, {gate.key for gate in gates})
    nodes = Node.objects.select_related("cluster").filter(cluster=plan.cluster_id)
    node = nodes.filter(uid=target.node_uid).first() if target else None
    if target is None or node is None:
        yield from empty
        return
    last = min(now, plan.state_since + BEFORE) if plan.state in PLAN_FINAL else now
    first = max(_released_at(target) - BEFORE, last - LONGEST)
    span = PlotSpan(math.ceil((last - first).total_seconds()), last.timestamp())
    metrics = {key: None for gate in gates for key in _metrics(gate)}
    drawn, limits = drawn_of(node, "", span, metrics=tuple(metrics), now=now), limits_for(node)
    for plot in empty:
        yield _filled(plot, node, drawn, limits, _released_at(target))


def _shown_target(stage: Stage, gates: Collection[str]) -> Target | None:
    answers = (answer for answer in stage.answers.all() if answer.gate in gates and answer.answer != Answer.PASS)
    named = {name for answer in answers for name in answer.nodes}
    targets = sorted(stage.targets.all(), key=lambda target: target.state_since, reverse=True)
    return next((target for target in targets if target.node_name in named), targets[0] if targets else None)


def _released_at(target: Target) -> datetime:
    return datetime.fromisoformat(target.baseline["at"]) if target.baseline else target.state_since


def _metrics(gate: NewFindings) -> list[str]:
    """Returns the metrics that can be lines, and the last Xid."""
    own = gate.measured_by.metrics if gate.measured_by else ()
    return [key for key in own if key == XID or (METRICS[key].kind is not MetricKind.LATCHED and key not in BITS)]


def _filled(
    plot: GatePlot,
    node: Node,
    drawn: TelemetryHistory,
    limits: Mapping[str, Sequence[PlotLimit]],
    released_at: datetime,
) -> GatePlot:
    gate, plots = plot.gate, {its.key: its for its in drawn.plots}
    own = gate.measured_by.metrics if isinstance(gate, NewFindings) and gate.measured_by else ()
    key = next((key for key in own if key in plots), own[0])
    points = sorted(
        Point(datetime.fromtimestamp(at, UTC), value, line.name)
        for line in (plots[key].lines if key in plots else ())
        for at, value in zip(drawn.times, line.values, strict=False)
        if value is not None
    )
    if not points:  # the source's own message may contain addresses
        return replace(plot, query=_query(key, node), why_empty=drawn.why_none or "No samples in this time.")
    shown = replace(plot, unit=plots[key].unit, query=_query(key, node), newest_at=points[-1].at, why_empty="")
    if key == XID:
        counted = [mark.at for mark in drawn.marks if mark.xid and not is_applications(mark.xid)]
        return _xid_plot(shown, counted, points[0].at, released_at)
    before = [point.value for point in points if point.at < released_at]
    of_metric = [(limit.severity.capitalize(), limit.value) for limit in limits.get(key, ())]
    return replace(shown, points=points, limits=of_metric, baseline=before)


def _xid_plot(plot: GatePlot, at: Sequence[datetime], begin: datetime, released_at: datetime) -> GatePlot:
    """Returns the count of new Xids that the gate counts, at least: the gauge hides a repeated number."""
    steps = [(Point(when, float(number)), Point(when, number + 1.0)) for number, when in enumerate(sorted(at))]
    before = float(sum(when < released_at for when in at))
    points = [Point(begin, 0.0), *chain.from_iterable(steps), Point(plot.newest_at or begin, float(len(at)))]
    limits = [("At most. Xids of applications do not count", before)]
    return replace(plot, unit="", points=points, limits=limits, baseline=[0.0, before])


def _query(metric: str, node: Node) -> str:
    series = EXPORTERS.get(node.gpu_vendor, DCGM)
    name = next((its.name for its in series if its.metric == metric), METRICS[metric].title)
    return f"{name} of {node.name}"
