"""The numbers behind the gates of a plan as plots: what was measured, its limits, its baseline, and the changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from django.db.models import Prefetch, prefetch_related_objects

from operations.test_jobs.test_progress import TestJobOutcome
from rollouts.gates.drift import Drift
from rollouts.gates.exposure import Exposure
from rollouts.gates.slo import Slo
from rollouts.gates.test_job import TestJobGate
from rollouts.lifecycle import StageState, TargetState
from rollouts.models import GateAnswer, Plan, ServiceLevelSample, Stage, Target, TestJob
from rollouts.queries.drift_plots import drift_plot
from rollouts.queries.gpu_gate_plots import gpu_plots
from rollouts.queries.node_gate_plots import node_plots
from rollouts.queries.plot_values import GatePlot, Point
from rollouts.queries.test_results import baselines_of

MOST_STAGES = 3  # the newest
MOST_SAMPLES = 240  # two hours of a service level
NOTHING_YET = (StageState.WAITING, StageState.ABANDONED)


def newest_stages(plan: Plan) -> list[Stage]:
    """Returns the newest stages that have begun, with changed nodes, answers and decisions. Four queries."""
    changed = Prefetch("targets", Target.objects.filter(state=TargetState.CHANGED).defer("facts"))
    current = Prefetch("answers", GateAnswer.objects.filter(is_current=True))
    stages = drawn_stages(plan.stages.all())
    prefetch_related_objects(stages, changed, current, "approvals")
    return stages


def drawn_stages(stages: Iterable[Stage]) -> list[Stage]:
    """Returns the newest stages that have begun, of all stages of a plan."""
    begun = [stage for stage in stages if not stage.is_rollback and stage.state not in NOTHING_YET]
    return sorted(begun, key=lambda stage: -stage.index)[:MOST_STAGES]


def gate_plots(plan: Plan, stages: Sequence[Stage], *, now: datetime) -> list[GatePlot]:
    """Returns a plot of each gate with a number of its own. At most 17 queries.

    The gates on GPU telemetry and those that judge nodes are drawn for the newest stage with a changed node.
    """
    found = [plot for stage in stages for plot in _stage_plots(plan, stage, now=now)]
    for stage in stages:
        if changes := _changes(stage):
            return [*found, *gpu_plots(plan, stage, changes, now=now), *node_plots(stage, changes)]
    return found


def _changes(stage: Stage) -> list[datetime]:
    return sorted(target.state_since for target in stage.targets.all())


def _stage_plots(plan: Plan, stage: Stage, *, now: datetime) -> Iterator[GatePlot]:
    changes = _changes(stage)
    for gate in stage.gates:
        if isinstance(gate, Slo):
            yield _service_level(stage, gate, changes)
        elif isinstance(gate, TestJobGate) and gate.rules:
            yield from _test_results(plan, stage, gate, changes)
        elif isinstance(gate, Exposure):
            yield _exposure(stage, gate, changes)
        elif isinstance(gate, Drift):
            yield drift_plot(plan, stage, gate, changes, now=now)


def _service_level(stage: Stage, gate: Slo, changes: Sequence[datetime]) -> GatePlot:
    rows = list(reversed(ServiceLevelSample.objects.filter(stage=stage, gate=gate.key).order_by("-at")[:MOST_SAMPLES]))
    newest = rows[-1] if rows else None
    points = [Point(row.at, row.value) for row in rows if row.value is not None]
    empty = "" if points else (newest.trouble or "The source has no value.") if newest else "Not measured yet."
    return GatePlot(
        gate,
        stage,
        gate.unit,
        gate.definition.value_expression.text,
        points,
        gate.limits(newest.baseline if newest else None),
        [row.baseline for row in rows if row.baseline is not None],
        changes,
        newest.newest_at if newest else None,
        empty,
    )


def _test_results(plan: Plan, stage: Stage, gate: TestJobGate, changes: Sequence[datetime]) -> Iterator[GatePlot]:
    """Yields a plot for each metric of the gate's Jobs."""
    uids = [target.node_uid for target in stage.targets.all()]
    rows = list(TestJob.objects.filter(plan=plan, node_uid__in=uids, outcome=TestJobOutcome.PASSED).order_by("told_at"))
    baselines = baselines_of(plan, rows)
    numbers = [(row, baselines.of(row)) for row in rows]
    for rule in gate.rules:
        its = [(row, found[rule.metric.path]) for row, found in numbers if rule.metric.path in found]
        points = [Point(row.told_at, result.value, row.node_name) for row, result in its if row.told_at]
        yield GatePlot(
            gate,
            stage,
            rule.metric.unit,
            rule.metric.title,
            points,
            rule.limits,
            [value for _, result in its for value in (*result.past, *result.peers)],
            changes,
            points[-1].at if points else None,
            "" if points else "No test Job has printed a number yet.",
        )


def _exposure(stage: Stage, gate: Exposure, changes: Sequence[datetime]) -> GatePlot:
    answer = next((row for row in stage.answers.all() if row.gate == gate.key), None)
    work = answer.value_of("Work") if answer else None
    return GatePlot(
        gate,
        stage,
        "GPU-min",
        "Work on changed nodes",
        [Point(answer.at, float(work))] if answer and work is not None else (),
        [("At least", gate.gpu_minutes)],
        changes=changes,
        newest_at=answer.at if answer else None,
        why_empty="" if work is not None else "Not evaluated yet.",
    )
