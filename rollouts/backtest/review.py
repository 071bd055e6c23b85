"""Evaluates gates again on the record of a plan: which gate would have stopped it earlier, and what others would do."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from time import monotonic
from types import MappingProxyType
from typing import Any

from django.db.models import QuerySet

from rollouts.backtest.record import PlanRecord, StageSpan
from rollouts.backtest.record_rows import read_record
from rollouts.backtest.recorded import MOMENT, durations_of, evaluate_past, missing_for, wait_without_end
from rollouts.gates import GATES
from rollouts.gates.base import Answer, Gate, GateResult, When
from rollouts.gates.options import read_gates
from rollouts.gates.slo import Slo
from rollouts.gates.soak import Soak
from rollouts.gates.test_job import TestJobGate
from rollouts.lifecycle import PlanState, TargetState
from rollouts.models import GateAnswer, Plan, Stage, TestJob
from rollouts.queries.gpu_telemetry import metrics_of, reads_health
from wording.lists import names
from wording.reports import sentence_of, written_report

MOST_MOMENTS, LEAST_MOMENTS = 150, 20  # of a stage and a gate
MOST_EVALUATIONS = 6_000  # nodes times moments: large stages are evaluated at fewer moments
NONE: Mapping[int, GateAnswer] = MappingProxyType({})
MOST_PAST = 10  # plans that are evaluated together
LONGEST_PAST_S = 10.0  # then no other of them is begun
REVIEWED = frozenset({PlanState.HALTED, PlanState.ROLLING_BACK, PlanState.ROLLED_BACK, PlanState.PROMOTED,
                      PlanState.ABORTING, PlanState.ABORTED})  # fmt: skip
BEFORE_RELEASES = "the evidence before a release"


@dataclass(frozen=True)
class Catch:
    """The first moment at which a gate stops a stage."""

    gate: Gate
    stage: Stage
    at: datetime
    is_wait: bool  # the gate does not fail: it waits when the stage passed, until a person is asked
    report: Mapping[str, Any]  # title, summary, evidence and steps of its result
    nodes: Sequence[str]
    spared: int  # nodes that were released after it
    good_nodes: Sequence[str]  # part of `nodes` that did not fail by the end of the record

    @property
    def sentence(self) -> str:
        return sentence_of(self.report["title"], self.report["summary"])

    @property
    def in_good_order(self) -> str:
        """Returns the good nodes as text; blank if there is none."""
        return names(self.good_nodes, most=5)


@dataclass(frozen=True)
class PastGate:
    gate: Gate
    catches: Sequence[Catch]  # at most one of each stage
    missing: Sequence[str] = ()  # evidence that was not recorded, so that it passed or failed nowhere for certain

    @property
    def is_unknown(self) -> bool:
        return bool(self.missing) and not self.catches


@dataclass(frozen=True)
class PlanReview:
    """The gates that a plan lacked, evaluated on its record."""

    plan: Plan
    end: datetime
    is_halt: bool
    has_releases: bool  # False: no stage released a node, so that there is nothing to evaluate
    gates: Sequence[PastGate]

    @property
    def catches(self) -> list[Catch]:
        """Returns the gates that would have stopped the plan, the earliest first; failures before waits."""
        every = (catch for past in self.gates for catch in past.catches)
        return sorted(every, key=lambda catch: (catch.at, catch.is_wait))

    @property
    def earliest(self) -> Catch | None:
        return next(iter(self.catches), None)

    @property
    def unknown(self) -> list[PastGate]:
        return [past for past in self.gates if past.is_unknown]

    @property
    def passed(self) -> list[PastGate]:
        return [past for past in self.gates if not past.catches and not past.missing]


@dataclass(frozen=True)
class PastTrials:
    """One gate on earlier plans, the newest first."""

    reviews: Sequence[PlanReview]
    left: Sequence[Plan]  # that were not evaluated: it took too long. This is no pass


def review_plan(plan: Plan, usual_options: Callable[[str], Mapping[str, Any]]) -> PlanReview:
    """Evaluates each gate of the catalogue that a stage did not count, with its usual options.

    Costs as `read_record`, and two queries.
    """
    record = read_record(plan)
    failed = _recorded_failures(record)
    gates = []
    for key in GATES:
        spans = [span for span in record.spans if not _is_counted(key, span.stage)]
        if not spans or key == Soak.key:
            continue
        (gate,) = read_gates({key: usual_options(key)})
        past = _past_gate(gate, record, spans, failed.get(key, {}))
        gates.append(replace(past, catches=past.catches[:1]))
    return PlanReview(plan, record.end, record.is_halt, bool(record.spans), gates)


def try_gate(plan: Plan, gate: Gate) -> PlanReview:
    """Evaluates one gate on every stage of the plan, whatever gates it had. Costs as `read_record`."""
    record = read_record(plan)
    past = _past_gate(gate, record, record.spans)
    return PlanReview(plan, record.end, record.is_halt, bool(record.spans), [past])


def try_gate_on_past(
    visible: QuerySet[Plan], plan: Plan, gate: Gate, *, most: int, clock: Callable[[], float] = monotonic
) -> PastTrials:
    """Evaluates one gate on the newest plans of the same cluster that have ended or halted, the newest first.

    Begins with none of them after `LONGEST_PAST_S`.
    """
    past = visible.filter(cluster=plan.cluster_id, state__in=REVIEWED, sealed_at__isnull=False).exclude(pk=plan.pk)
    plans = list(past.select_related("cluster").order_by("-state_since", "-pk")[:most])
    ends_at, reviews = clock() + LONGEST_PAST_S, list[PlanReview]()
    while len(reviews) < len(plans) and clock() < ends_at:
        reviews.append(try_gate(plans[len(reviews)], gate))
    return PastTrials(reviews, plans[len(reviews) :])


def _is_counted(key: str, stage: Stage) -> bool:
    options = stage.gate_options.get(key)
    is_overridden = any(override.gate == key for override in stage.overrides.all())
    return options is not None and not options.get("advisory") and not is_overridden


def _recorded_failures(record: PlanRecord) -> dict[str, dict[int, GateAnswer]]:
    """Returns the first recorded failure of gates that did not count, by gate and stage."""
    stages = [span.stage for span in record.spans]
    rows = GateAnswer.objects.filter(stage__in=stages, answer=Answer.FAIL, since__lt=record.end).order_by("-since")
    found: dict[str, dict[int, GateAnswer]] = {}
    for row in rows:
        found.setdefault(row.gate, {})[row.stage_id] = row
    return found


def _past_gate(
    gate: Gate, record: PlanRecord, spans: Sequence[StageSpan], recorded: Mapping[int, GateAnswer] = NONE
) -> PastGate:
    if gate.when is not When.THROUGH:
        return PastGate(gate, (), (BEFORE_RELEASES,))
    catches: list[Catch] = []
    missing: dict[str, None] = {}
    for span in spans:
        if row := recorded.get(span.stage.pk):
            catches.append(_catch(gate, record, span, row.since, row.report, row.nodes))
            continue
        if unasked := _unasked(gate, record, span):
            missing[unasked] = None
            continue
        unmeasured = _unmeasured(gate, span)
        if catch := _first_failure(gate, record, span) or (None if unmeasured else _wait(gate, record, span)):
            catches.append(catch)
            continue
        if unmeasured:
            missing[unmeasured] = None
            continue
        last = span.passed_at or span.end
        if unread := missing_for(gate, record.at(span, last, work=True), now=last):
            missing[unread] = None
    return PastGate(gate, catches, tuple(missing))


def _unasked(gate: Gate, record: PlanRecord, span: StageSpan) -> str:
    """Returns evidence that exists only if the stage asked for it, and this stage did not."""
    if isinstance(gate, TestJobGate):
        rows = [job for target in record.targets[span.stage.pk] for job in target.jobs]
        return "" if any(_is_of(gate, row) for row in rows) else "test Jobs of this kind: none ran"
    if isinstance(gate, Slo):
        asked = next((its for its in span.stage.gates if isinstance(its, Slo) and its.key == gate.key), None)
        if asked is None or _measurement(asked) != _measurement(gate):
            return "measurements of this service level: none were made"
    return ""


def _unmeasured(gate: Gate, span: StageSpan) -> str:
    """Returns the samples that the gate measures, if no gate of the stage asked for them."""
    asking = [its for its in span.stage.gates if reads_health(its)]
    if not (asking and reads_health(gate)) or metrics_of([gate]) <= metrics_of(asking):
        return ""
    return "samples of its metrics: no gate of the stage asked for them"


def _measurement(gate: Slo) -> tuple[object, ...]:
    return gate.indicator, gate.expression, gate.samples, gate.baseline, gate.window


def _moments(gate: Gate, record: PlanRecord, span: StageSpan) -> Iterator[datetime]:
    """Yields the moments at which a gate's result can change, without the end of the record."""
    instants = record.instants(span)
    later = {at + duration + MOMENT for at in instants for duration in durations_of(gate)}
    every = sorted(at for at in later.union(instants) if at <= span.end and at < record.end)
    nodes = len(record.targets[span.stage.pk])
    most = max(LEAST_MOMENTS, min(MOST_MOMENTS, MOST_EVALUATIONS // max(1, nodes)))
    step = max(1, -(-len(every) // most))
    yield from (every[place] for place in range(len(every)) if place % step == 0 or place == len(every) - 1)


def _first_failure(gate: Gate, record: PlanRecord, span: StageSpan) -> Catch | None:
    for at in _moments(gate, record, span):
        past = evaluate_past(gate, record.at(span, at), now=at)
        if past.answer is Answer.FAIL and past.result is not None:
            return _catch_of_result(gate, record, span, at, past.result)
    return None


def _wait(gate: Gate, record: PlanRecord, span: StageSpan) -> Catch | None:
    if span.passed_at is None or span.passed_at >= record.end:
        return None
    result = wait_without_end(gate, record.at(span, span.passed_at, work=True), now=span.passed_at)
    return _catch_of_result(gate, record, span, span.passed_at, result, is_wait=True) if result else None


def _catch_of_result(
    gate: Gate, record: PlanRecord, span: StageSpan, at: datetime, result: GateResult, *, is_wait: bool = False
) -> Catch:
    return _catch(gate, record, span, at, written_report(result), result.nodes, is_wait=is_wait)


def _catch(
    gate: Gate,
    record: PlanRecord,
    span: StageSpan,
    at: datetime,
    report: Mapping[str, Any],
    nodes: Sequence[str],
    *,
    is_wait: bool = False,
) -> Catch:
    every = [target for targets in record.targets.values() for target in targets]
    spared = sum(target.baseline is not None and at < target.baseline.at <= record.end for target in every)
    failed = {
        target.target.node_name
        for target in every
        if any(move.to is TargetState.FAILED for move in target.moves) or target.target.is_lost
    }
    good = [name for name in nodes if name not in failed]
    return Catch(gate, span.stage, at, is_wait, report, nodes, spared, good)


def _is_of(gate: TestJobGate, row: TestJob) -> bool:
    """Returns whether the Job ran what the gate asks for, and its numbers were read."""
    command = gate.command or (gate.test.command_on(row.amount) if gate.test else "")
    is_read = not gate.metric or gate.metric == row.metric or gate.metric in row.printed
    return is_read and row.command == command and row.image == (gate.image or row.image)
