"""The record of a plan, from which its stages are seen again at any moment until its last halt or its end.

Pods, validators and GPU samples of changed nodes are recorded while a round of the plan looks at them
(`rollouts/engine/looks.py`). Where a plan has no such record, a gate that needs them says so.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from functools import cached_property, partial
from typing import Any, NamedTuple

from fleet.history.facts import NodeChange
from fleet.models import PodPlacement
from gpu.resources import Layout, ResourceKind, whole_gpus
from health.telemetry.metrics import METRICS
from operations.test_jobs.test_progress import TIMED_OUT, TestJobOutcome
from rollouts.backtest.recorded import Missing, Recorded, RecordedEvidence, RecordedService, RecordedTarget
from rollouts.engine.exposure import Allocated, gpu_time
from rollouts.engine.looks import RecordedNode, RecordedStage
from rollouts.engine.workloads import owner_of
from rollouts.gates.base import (
    Baseline,
    Evidence,
    FindingEvidence,
    GpuTelemetry,
    HealthEvidence,
    PodEvidence,
    SeenWork,
    ServiceLevel,
    TestJobEvidence,
)
from rollouts.gates.earlier_findings import EarlierFindings
from rollouts.gates.slo import SLOS
from rollouts.lifecycle import TargetState
from rollouts.models import Cordon, Plan, Stage, Target, TestJob
from rollouts.queries.test_results import Baselines

EXPORTED = frozenset(METRICS)
PODS_OF_STAGE = tuple(each.name for each in fields(RecordedStage) if each.name.startswith("workloads_"))
OF_LOOK = tuple(each.name for each in fields(RecordedNode))
AMOUNTS = ("gpu_allocatable", "slices_allocatable", "shares_allocatable")
KINDS = (ResourceKind.WHOLE, ResourceKind.SLICE, ResourceKind.SHARE)
UNKNOWN = object()
Missed = Any  # a `Missing` in place of a value


class PastMove(NamedTuple):
    at: datetime
    to: TargetState
    reason: str


@dataclass(frozen=True)
class StageSpan:
    """The time in which the gates of a stage were evaluated: from its first release until the next stage's."""

    stage: Stage
    begin: datetime
    end: datetime
    passed_at: datetime | None  # None: it had not passed by then


@dataclass(frozen=True)
class PastFinding:
    evidence: FindingEvidence
    opened_at: datetime | None
    first_opened_at: datetime | None  # of an earlier occurrence of the same finding
    resolved_at: datetime | None
    worse: Sequence[tuple[datetime, str]] = ()  # when it became worse, and its severity before

    def seen(self, at: datetime) -> FindingEvidence | None:
        its, again = self.evidence, self.first_opened_at
        if at < its.since:
            return self._with(at, again) if again == at else None
        if self.resolved_at is not None and self.resolved_at <= at:
            return None
        return self._with(at, self.opened_at)

    def _with(self, at: datetime, opened_at: datetime | None) -> FindingEvidence:
        its = self.evidence
        severity = next((was for when, was in self.worse if when > at), its.severity)
        is_open = opened_at is not None and opened_at <= at
        return FindingEvidence(its.key, its.rule, severity, its.title, min(its.since, at), is_open, its.is_shadow)

    @property
    def instants(self) -> list[datetime]:
        return [at for at in (self.evidence.since, self.first_opened_at, self.opened_at, self.resolved_at) if at]


@dataclass
class TargetRecord:
    target: Target
    baseline: Baseline | None
    moves: Sequence[PastMove]
    gpus: int = 0
    layout: Layout = field(default_factory=Layout)
    changes: Mapping[str, Sequence[NodeChange]] = field(default_factory=dict)  # by column, the oldest first
    lasting: Mapping[str, Any] = field(default_factory=dict)  # columns that did not change in this time
    findings: Sequence[PastFinding] = ()
    jobs: Sequence[TestJob] = ()
    cordons: Sequence[Cordon] = ()
    placements: Sequence[PodPlacement] | None = ()  # None: too many to read
    looks: Sequence[tuple[datetime, RecordedNode | None]] = ()  # the oldest first; None: nothing is recorded from there

    @cached_property
    def instants(self) -> list[datetime]:
        """Returns when its evidence changed."""
        found = {move.at for move in self.moves}
        found |= {change.at for its in self.changes.values() for change in its}
        found |= {at for finding in self.findings for at in (*finding.instants, *(when for when, _ in finding.worse))}
        found |= {at for job in self.jobs for at in (job.intended_at, job.told_at) if at}
        found |= {at for cordon in self.cordons for at in (cordon.wanted_since, cordon.ended_at) if at}
        found |= {at for at, _ in self.looks}
        served = self.target.tenants_ready_at
        return sorted(found | ({served} if served else set()))

    def look(self, since: datetime, at: datetime) -> RecordedNode | None:
        """Returns the recorded evidence of the node since its change."""
        return newest_look(self.looks, since, at)

    def state(self, at: datetime) -> PastMove:
        place = bisect_right(self.moves, at, key=lambda move: move.at)
        return self.moves[place - 1] if place else PastMove(self.moves[0].at, TargetState.HELD, "")

    def value(self, column: str, at: datetime) -> Any:
        """Returns the value of a column of the node; `UNKNOWN` if nothing recorded it."""
        changes = self.changes.get(column, ())
        place = bisect_right(changes, at, key=lambda change: change.at)
        if changes:
            return changes[place - 1].now if place else changes[0].was
        return self.lasting.get(column, UNKNOWN)

    def allocatable(self, at: datetime) -> Any:
        """Returns what the node offers. Its timeline has totals, and the baseline has resources."""
        base = (self.baseline.allocatable if self.baseline else None) or {}
        released_at = self.baseline.at if self.baseline else at
        if not any(released_at < change.at <= at for column in AMOUNTS for change in self.changes.get(column, ())):
            return base
        names = dict(zip(AMOUNTS, by_kind(base, self.layout), strict=True))
        if any(len(its) > 1 for its in names.values()):
            return Missing("number of each kind of slice")
        totals = {its[0]: self.value(column, at) for column, its in names.items() if its}
        return {name: base[name] if total is UNKNOWN else total or 0 for name, total in totals.items()}


def newest_look(looks: Sequence[tuple[datetime, Any]], since: datetime, at: datetime) -> Any:
    """Returns the newest look between two moments; None if there is none."""
    place = bisect_right(looks, at, key=lambda look: look[0])
    return looks[place - 1][1] if place and looks[place - 1][0] >= since else None


def by_kind(amounts: Mapping[str, int], layout: Layout) -> list[list[str]]:
    return [[name for name in amounts if layout.way(name).kind == kind] for kind in KINDS]


@dataclass
class PlanRecord:
    plan: Plan
    end: datetime
    is_halt: bool  # the plan halted at its end
    spans: Sequence[StageSpan]
    targets: Mapping[int, Sequence[TargetRecord]] = field(default_factory=dict)  # by key of a stage
    findings: Mapping[str, Sequence[PastFinding]] = field(default_factory=dict)  # by UID of a node of the cluster
    # By UID of a node with the same GPUs: its name, and whether it has another driver now.
    others: Mapping[str, tuple[str, bool]] = field(default_factory=dict)
    past: EarlierFindings | None = None  # of these nodes, in the days before
    gaps: Sequence[tuple[datetime, datetime]] = ()  # without observation of the cluster
    baselines: Baselines = field(default_factory=Baselines)
    # By key of a stage and of its gate, the oldest first.
    samples: Mapping[tuple[int, str], Sequence[ServiceLevel]] = field(default_factory=dict)
    # windows that do not overlap
    windows: Mapping[tuple[int, str], Sequence[ServiceLevel]] = field(default_factory=dict)
    looks: Mapping[int, Sequence[tuple[datetime, RecordedStage | None]]] = field(default_factory=dict)  # likewise
    seen: dict[tuple[int, bool, int], RecordedTarget] = field(default_factory=dict)
    moments: dict[tuple[int, datetime, bool], Recorded] = field(default_factory=dict)

    @property
    def has_test_jobs(self) -> bool:
        return any(target.jobs for targets in self.targets.values() for target in targets)

    @cached_property
    def evaluations(self) -> list[datetime]:
        """Returns moments at which a finding changed: the rules ran."""
        return sorted({at for its in self.findings.values() for finding in its for at in finding.instants})

    def instants(self, span: StageSpan) -> list[datetime]:
        """Returns when the evidence of a stage changed, its pass and its end included."""
        found = {at for target in self.targets[span.stage.pk] for at in target.instants}
        found |= {level.asked_at for (stage, _), its in self.samples.items() if stage == span.stage.pk for level in its}
        found |= {at for at, _ in self.looks.get(span.stage.pk, ())}
        found |= {at for at in (span.passed_at, span.end) if at}
        return sorted(at for at in found if span.begin <= at <= span.end)

    def at(self, span: StageSpan, at: datetime, *, work: bool = False) -> Recorded:
        """Returns the evidence of a stage. `work` adds tenants' pods and GPU time, which no failure rests on."""
        key = span.stage.pk, at, work
        if key not in self.moments:
            at_best = partial(self._stage, span, at, work=work, at_best=True)
            self.moments[key] = Recorded(at_best, partial(self._stage, span, at, at_best=False))
        return self.moments[key]

    def _stage(self, span: StageSpan, at: datetime, *, at_best: bool, work: bool = False) -> Evidence:
        records = self.targets[span.stage.pk]
        targets = tuple(self._target(record, at, at_best=at_best) for record in records)
        if work:
            targets = tuple(_with_work(target, record, at) for target, record in zip(targets, records, strict=True))
        before = self._ready_before(records, at)
        look = newest_look(self.looks.get(span.stage.pk, ()), span.begin, at)
        pods: dict[str, Any] = {"workloads_ready_now": before if at_best else _missing("readiness of tenants' pods")}
        health = self._health(records, at, look)
        if look:
            pods = {name: getattr(look, name) for name in PODS_OF_STAGE}
        elif not at_best:
            health = _missing("runs of the rules and samples of GPUs")
        return RecordedEvidence(
            seen_at=at,
            to_version=self.plan.to_version,
            targets=targets,
            **pods,
            workloads_ready_before=before,
            health=health if at_best or not look or look.has_health else _missing("samples of GPUs"),
            services={gate.key: self._service(span, gate.key, at) for gate in SLOS},
            hours=_missing("hours of GPU telemetry"),
        )

    def _target(self, record: TargetRecord, at: datetime, *, at_best: bool) -> RecordedTarget:
        key = record.target.pk, at_best, bisect_right(record.instants, at)
        found = self.seen.get(key)
        is_seen = not any(begin <= at < end for begin, end in self.gaps)
        if found is None or found.is_seen is not is_seen:
            found = self.seen[key] = self._read(record, at, at_best=at_best, is_seen=is_seen)
        return found

    def _read(self, record: TargetRecord, at: datetime, *, at_best: bool, is_seen: bool) -> RecordedTarget:
        row, (since, state, reason) = record.target, record.state(at)
        baseline: Any = record.baseline if state is not TargetState.HELD else None
        if baseline is not None and baseline.at > at:
            baseline = _missing("state of the node before its first try")

        def known(column: str, what: str) -> Any:
            value = record.value(column, at)
            return _missing(what) if value is UNKNOWN else value

        served = row.tenants_ready_at
        look = record.look(since, at) if state is TargetState.CHANGED else None
        traits = {"kernel": record.value("kernel", at), "OS image": record.value("os_image", at)}
        return RecordedTarget(
            uid=row.node_uid,
            name=row.node_name,
            state=state,
            state_since=since,
            baseline=baseline,
            is_seen=is_seen,
            is_retried=row.retried_at is not None and row.retried_at <= at,
            is_lost=row.is_lost and state is TargetState.EXCLUDED,
            failed_reason=reason if state is TargetState.FAILED else "",
            driver_version=known("driver_version", "driver version"),
            upgrade_state=known("upgrade_state", "upgrade state"),
            is_ready=known("is_ready", "readiness of nodes"),
            allocatable=record.allocatable(at),
            is_unschedulable=known("is_unschedulable", "cordons"),
            is_cordoned_by_us=any(
                one.wanted_since <= at and (one.ended_at is None or at < one.ended_at) for one in record.cordons
            ),
            mig_config_state=known("mig_config_state", "state of the MIG manager"),
            test_job=self._test_job(record, since, at) if state is TargetState.CHANGED else None,
            has_served=served is not None and since <= served <= at,
            facts=row.facts,
            work=_missing("GPU time of tenants"),
            findings=self._findings(record, since, at, at_best=at_best),
            **(
                _recorded_evidence(look, record, at_best=at_best)
                if look
                else _unseen(record, at, traits, at_best=at_best)
            ),
        )

    def _test_job(self, record: TargetRecord, since: datetime, at: datetime) -> TestJobEvidence | None:
        row = next((job for job in reversed(record.jobs) if since <= job.intended_at <= at), None)
        if row is None:
            return None
        if row.told_at is None or row.told_at > at:
            return TestJobEvidence(None)
        outcome = TestJobOutcome(row.outcome) if row.outcome else None
        return TestJobEvidence(
            outcome,
            row.says,
            row.said,
            row.told_at,
            self.baselines.of(row),
            row.says.startswith(TIMED_OUT),
            row.gpu_time,
        )

    def _findings(
        self, record: TargetRecord, since: datetime, at: datetime, *, at_best: bool
    ) -> tuple[FindingEvidence, ...]:
        """Returns the findings of a node. At best those that began during its change have ended, unless rules ran."""
        found = tuple(seen for finding in record.findings if (seen := finding.seen(at)))
        if not at_best or self._ran_between(since, at):
            return found
        return tuple(one for one in found if one.since >= since)

    def _ran_between(self, since: datetime, at: datetime) -> bool:
        newest = bisect_right(self.evaluations, at)
        return newest > 0 and self.evaluations[newest - 1] > since

    def _health(self, records: Sequence[TargetRecord], at: datetime, look: RecordedStage | None) -> HealthEvidence:
        changed = [state.at for record in records if (state := record.state(at)).to is TargetState.CHANGED]
        first = min(changed, default=at)
        begun = {
            record.target.node_uid
            for its in self.targets.values()
            for record in its
            if record.state(at).to is not TargetState.HELD
        }
        planned = {record.target.node_uid for its in self.targets.values() for record in its}
        peers = {
            name: tuple(
                seen for one in self.findings.get(uid, ()) if (seen := one.seen(at)) is not None and seen.since >= first
            )
            for uid, (name, is_unchanged) in self.others.items()
            if uid not in begun and (uid in planned or is_unchanged)
        }
        if look is None or not look.has_health:
            return HealthEvidence(evaluated_at=at, has_source=True, peers=peers, past=self.past)
        return HealthEvidence(at if look.rules_ran else None, look.has_source, look.trouble, peers, past=self.past)

    def _service(self, span: StageSpan, gate: str, at: datetime) -> RecordedService:
        levels = self.samples.get((span.stage.pk, gate), ())
        place = bisect_right(levels, at, key=lambda level: level.asked_at)
        level: Any = levels[place - 1] if place else _missing("measurements of the service level")
        return RecordedService(
            level, tuple(one for one in self.windows.get((span.stage.pk, gate), ()) if one.asked_at <= at)
        )

    @staticmethod
    def _ready_before(records: Sequence[TargetRecord], at: datetime) -> dict[str, int]:
        most: dict[str, int] = {}
        for record in records:
            if record.baseline and record.baseline.at <= at:
                for owner, ready in (record.target.baseline or {}).get("owners_ready", {}).items():
                    most[owner] = max(most.get(owner, 0), ready)
        return most


def _missing(what: str) -> Missed:
    return Missing(what)


def _recorded_evidence(look: RecordedNode, record: TargetRecord, *, at_best: bool) -> dict[str, Any]:
    """Returns the evidence of a node as its gates saw it."""
    seen = {name: getattr(look, name) for name in OF_LOOK}
    if look.telemetry is None:
        seen["telemetry"] = _full(record.gpus) if at_best else _missing("samples of GPUs")
    return seen


def _unseen(record: TargetRecord, at: datetime, traits: Mapping[str, Any], *, at_best: bool) -> dict[str, Any]:
    """Returns the evidence of a node without a look: missing, or as good as it can be."""
    held = record.value("is_held", at)
    return {
        "operands": _missing("readiness of operands"),
        "workloads": () if at_best else _missing("readiness of tenants' pods"),
        "validator": _missing("runs of the validator"),
        "driver_started_at": _missing("starts of driver pods"),
        "is_held_by_others": _missing("holds by others") if not at_best and held else False,
        "traits": {title: value for title, value in traits.items() if value is not UNKNOWN}
        if at_best
        else _missing("MIG and device plugin configuration"),
        "telemetry": _full(record.gpus) if at_best else _missing("samples of GPUs"),
    }


def _full(gpus: int) -> GpuTelemetry:
    return GpuTelemetry(gpus, gpus, dict.fromkeys(EXPORTED, gpus), EXPORTED)


def _with_work(target: RecordedTarget, record: TargetRecord, at: datetime) -> RecordedTarget:
    """Adds the pods that were there, as if all had been Ready, and the GPU time that they had at most."""
    since = target.state_since
    if record.placements is None:
        too_many = Missing("pods, as there were too many")
        return _changed(target, workloads=too_many, work=too_many)
    spans = [
        Allocated(row.since, row.until or at, whole_gpus(row.resources, record.layout)) for row in record.placements
    ]
    pods = tuple(
        PodEvidence(str(row), owner_of(row), is_ready=True, started_at=row.since, restarts=0)
        for row in record.placements
        if row.since <= at and (row.until is None or row.until > at)
    )
    time = gpu_time(spans, gpus=record.gpus, since=since, until=at)
    if look := record.look(since, at):
        return _changed(target, workloads=look.workloads, work=SeenWork(time))
    began = record.baseline.at if record.baseline else None  # the new driver, at the earliest
    return _changed(target, workloads=pods, work=SeenWork(time), driver_started_at=began)


def _changed(target: RecordedTarget, **given: Any) -> RecordedTarget:
    """Returns the target with these fields. Others may be missing, so none is read; cached properties are left out."""
    kept = vars(target)
    return RecordedTarget(**{one.name: kept[one.name] for one in fields(target) if one.name in kept} | given)
