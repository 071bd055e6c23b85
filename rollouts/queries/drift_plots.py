"""The plot of the gate on slow drift: one measure of one changed node, hour by hour, with its own past."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from rollouts.gates.base import Answer, MeasuredHour
from rollouts.gates.drift import FEWEST_PAST, HOUR, MEASURES, Drift, Measure, samples_of
from rollouts.models import Plan, Stage, Target
from rollouts.queries.gpu_hours import hours_of
from rollouts.queries.plot_values import GatePlot, Point

PAST, AFTER = timedelta(hours=24), timedelta(days=3)  # as the gate compares


def drift_plot(plan: Plan, stage: Stage, gate: Drift, changes: Sequence[datetime], *, now: datetime) -> GatePlot:
    """Returns the plot of the measure and node that drift, else of the first measure of the newest change. One query.

    An hour is drawn at its end, since it counts from then on.
    """
    plot = GatePlot(gate, stage, "", "", changes=changes, why_empty="No node has changed yet.")
    answer = next((row for row in stage.answers.all() if row.gate == gate.key), None)
    has_drift = answer is not None and answer.answer != Answer.PASS
    named = answer.nodes if answer is not None and has_drift else ()
    target = _shown_target(stage, named)
    if target is None or target.baseline is None:
        return plot
    released_at = datetime.fromisoformat(target.baseline["at"])
    minute = int(now.timestamp()) // 60
    its = hours_of(plan.cluster_id, (target.node_name,), released_at - PAST, released_at + AFTER, minute)
    hours = its.get(target.node_name, ())
    found = list(_measured(hours, released_at, target.state_since))
    if not found:
        return GatePlot(
            gate,
            stage,
            "",
            f"Hours of {target.node_name}",
            changes=changes,
            why_empty="No whole hour of GPU telemetry yet.",
        )
    told = f"{answer.sentence} {answer.cause}" if answer is not None and has_drift else ""
    measure, past, after = next((one for one in found if one[0].title in told), found[0])
    points = [Point(each.begins_at + HOUR, each.values[measure.key], target.node_name) for each in (*past, *after)]
    way = "At most" if measure.is_higher_worse else "At least"
    return GatePlot(
        gate,
        stage,
        measure.unit,
        f"{measure.title} of {target.node_name}, mean of an hour",
        points,
        [(way, gate.limit_of(measure, past))] if len(past) >= FEWEST_PAST else (),
        [each.values[measure.key] for each in past],
        changes,
        points[-1].at,
    )


def _shown_target(stage: Stage, named: Sequence[str]) -> Target | None:
    targets = sorted(
        (target for target in stage.targets.all() if target.baseline),
        key=lambda target: target.state_since,
        reverse=True,
    )
    return next((target for target in targets if target.node_name in named), targets[0] if targets else None)


def _measured(
    hours: Sequence[MeasuredHour], released_at: datetime, changed_at: datetime
) -> Iterator[tuple[Measure, list[MeasuredHour], list[MeasuredHour]]]:
    for measure in MEASURES:
        past, after = samples_of(measure, hours, released_at, changed_at)
        if past or after:
            yield measure, past, after
