"""The evidence that a round sees of a virtual fleet, as the engine reads it from rows and the cluster. Pure."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from health.rules.base import Severity
from operations.test_jobs.test_progress import TestJobOutcome
from rollouts.gates.base import (
    Baseline,
    FindingEvidence,
    GpuTelemetry,
    HealthEvidence,
    MetricResult,
    OperandEvidence,
    PodEvidence,
    SeenWork,
    ServiceLevel,
    TargetEvidence,
    TestJobEvidence,
    ValidatorEvidence,
)
from rollouts.gates.slo import Slo
from rollouts.gates.test_job import MetricRule, TestJobGate
from rollouts.lifecycle import TargetState
from rollouts.rehearsal.faults import GPU_RULE_KEYS, RULE_TITLES, PodFault, ValidatorFault
from rollouts.rehearsal.fleet import HARMLESS_AFTER, VALIDATION, VirtualFleet, VirtualNode

OPERANDS = ("Device plugin", "Driver", "Validator")
ALL_READY = tuple(OperandEvidence(name, is_ready=True) for name in OPERANDS)
RULES_RUN_EVERY = timedelta(seconds=30)
USUAL = 1000.0  # of any number that a gate compares, where the gate has no limit
MARGIN = 0.1  # by which a healthy value is within the limits of its gate
ENOUGH_SAMPLES = 100.0


@dataclass
class VirtualTarget:
    """A node in its stage, as the plan has it."""

    node: VirtualNode
    state: TargetState
    since: datetime
    baseline: Baseline | None = None
    tested_since: datetime | None = None  # since when its test Job runs; None: none was created
    has_served: bool = False
    test: TestJobGate | None = None  # of its stage
    work_needed: timedelta = timedelta(0)  # GPU time; more of it answers no gate of its stage

    def gathers_work(self, now: datetime) -> bool:
        """Returns whether tenants work on the changed node, and a gate of its stage still asks for more."""
        return timedelta(0) < self.node.gpu_time(now) < self.work_needed


def baseline_of(node: VirtualNode, fleet: VirtualFleet, now: datetime) -> Baseline:
    """Returns the state of a node before its release."""
    findings = {one.key: one.severity for one in _findings(node, _telemetry(node, fleet, now), now)}
    return Baseline(
        at=now,
        driver_version=node.version,
        allocatable=node.offers,
        workloads={owner_of(node): node.pods} if node.pods else {},
        operands=OPERANDS,
        validator_uid="before",
        mig_gpus=node.mig_gpus,
        traits=node.facts,
        findings=findings,
    )


def owner_of(node: VirtualNode) -> str:
    return f"ReplicaSet tenants/model-on-{node.name}"


def target_evidence(target: VirtualTarget, fleet: VirtualFleet, now: datetime) -> TargetEvidence:
    node = target.node
    ready, telemetry = node.is_ready(now), _telemetry(target.node, fleet, now)
    validator, fails = None, node.defect.validator is ValidatorFault.FAILS
    began = (node.changed_at or now) - node.validates_for
    if node.is_changed:
        validator = ValidatorEvidence("after", is_ready=ready and not fails, started_at=began, restarts=0)
    elif node.state != VALIDATION:
        validator = ValidatorEvidence("before", is_ready=True, started_at=now - timedelta(days=1), restarts=0)
    offers = dict(node.offers)
    if offers and node.shows_since(now):
        first = next(iter(offers))
        offers[first] = max(0, offers[first] - node.defect.missing_gpus)
    return TargetEvidence(
        uid=node.uid,
        name=node.name,
        state=target.state,
        state_since=target.since,
        baseline=target.baseline,
        is_seen=True,
        driver_version=node.loaded,
        upgrade_state=node.state,
        is_ready=ready,
        allocatable=offers,
        operands=ALL_READY,
        workloads=_pods(node, now) if target.baseline else (),
        validator=validator,
        driver_started_at=began - node.pace.driver,
        is_unschedulable=node.is_cordoned or node.is_out,
        is_cordoned_by_us=node.is_cordoned,
        traits=node.facts,
        test_job=_test_job(target, fleet, now),
        has_served=target.has_served,
        facts=node.facts,
        work=SeenWork(min(node.gpu_time(now), target.work_needed)) if node.is_changed else None,
        findings=_findings(node, telemetry, now),
        telemetry=telemetry,
    )


def _pods(node: VirtualNode, now: datetime) -> tuple[PodEvidence, ...]:
    if not node.pods_came(now):
        return ()
    ready, restarts, restarted_at = node.pods_ready(now), node.restarts(now), node.restarted_at(now)
    reason = "CrashLoopBackOff" if restarts and node.pods_crash(now) else ""
    return tuple(
        PodEvidence(
            f"tenants/model-on-{node.name}-{number}",
            owner_of(node),
            is_ready=ready,
            started_at=node.open_since or now,
            restarts=restarts + (restarted_at is not None),
            reason=reason,
            unready_since=None if ready else restarted_at,
        )
        for number in range(node.pods)
    )


def _test_job(target: VirtualTarget, fleet: VirtualFleet, now: datetime) -> TestJobEvidence | None:
    since, node = target.tested_since, target.node
    if since is None:
        return None
    done_at = since + node.pace.test
    if now < done_at:
        return TestJobEvidence(None, "It runs.")
    if node.defect.pods is PodFault.CRASH and node.shows_since(done_at):
        return TestJobEvidence(TestJobOutcome.FAILED, "It failed.", "CUDA error: no kernel image", told_at=done_at)
    numbers = (
        {path: result for rule in target.test.rules for path, result in _rule_metrics(rule, node, fleet, done_at)}
        if (target.test)
        else {}
    )
    return TestJobEvidence(TestJobOutcome.PASSED, "It completed.", told_at=done_at, numbers=numbers)


def _rule_metrics(
    rule: MetricRule, node: VirtualNode, fleet: VirtualFleet, at: datetime
) -> Iterator[tuple[str, MetricResult]]:
    """Yields the number of a metric on the node and before its change, and the samples that it rests on."""
    usual, noise, is_higher_better = usual_value(rule), fleet.noise, not rule.metric.is_lower_better
    scatter = (noise.test(node.name, "after"), noise.test(node.name, "before")) if noise else (1.0, 1.0)
    value = scatter[0] * _measured(usual, node.throughput_at(at), is_higher_better=is_higher_better)
    past = scatter[1] * _measured(usual, node.throughput, is_higher_better=is_higher_better)
    yield rule.metric.path, MetricResult(value, past=(past,))
    if rule.metric.samples:
        yield rule.metric.samples, MetricResult(float(rule.metric.least_samples))


def usual_value(gate: Slo | MetricRule) -> float:
    """Returns what a healthy node measures: within its limits, with a margin where both allow one."""
    least = gate.at_least * (1 + MARGIN)
    most = gate.at_most / (1 + MARGIN) if gate.at_most else math.inf
    return (gate.at_least + gate.at_most) / 2 if least > most else min(max(USUAL, least), most)


def _measured(usual: float, rate: float, *, is_higher_better: bool) -> float:
    """Returns the number at a throughput, as a share of the usual one."""
    return usual * rate if is_higher_better else usual / rate


def _findings(node: VirtualNode, telemetry: GpuTelemetry | None, now: datetime) -> tuple[FindingEvidence, ...]:
    """Returns the open findings. Without telemetry of the node, no rule about GPUs sees anything."""
    found = []
    is_blind = telemetry is None or not telemetry.reporting
    if node.is_sick_before:
        before = now - timedelta(days=3)
        title = f"{node.name} is often not Ready"
        found.append(FindingEvidence("node-not-ready", "node-not-ready", Severity.CRITICAL, title, before))
    if node.has_harmless_finding and node.changed_at and now >= node.changed_at + HARMLESS_AFTER:
        title = f"GPU 2 of {node.name} uses nearly all of its memory"
        found.append(FindingEvidence("memory", "gpu-memory", Severity.NOTE, title, node.changed_at))
    for one in node.own_findings:
        if one.begins_at <= now < one.ends_at and not (is_blind and one.rule in GPU_RULE_KEYS):
            title = f"GPU 5 of {node.name}: {RULE_TITLES[one.rule]}"
            found.append(FindingEvidence(f"{one.rule} 5", one.rule, one.severity, title, one.begins_at))
    first = node.shows_since(now)
    opened: dict[str, FindingEvidence] = {}  # by rule: a finding that got worse began with its first opening
    for opens in node.defect.opens if first else ():
        is_measured = not opens.metrics or (telemetry and not opens.metrics.isdisjoint(telemetry.fresh))
        if first is None or now < first + opens.after or not is_measured or (is_blind and opens.rule in GPU_RULE_KEYS):
            continue
        since = opened[opens.rule].since if opens.rule in opened else first + opens.after
        title = f"GPU 3 of {node.name}: {RULE_TITLES[opens.rule]}"
        opened[opens.rule] = FindingEvidence(f"{opens.rule} 3", opens.rule, opens.severity, title, since)
    return (*found, *opened.values())


def _telemetry(node: VirtualNode, fleet: VirtualFleet, now: datetime) -> GpuTelemetry | None:
    if fleet.trouble or not fleet.has_source:
        return None
    is_late = node.changed_at is not None and now < node.changed_at + node.exporter_after
    is_silent = is_late or (node.defect.is_exporter_silent and node.shows_since(now))
    if node.telemetry is None or not is_silent:
        return node.telemetry
    return replace(node.telemetry, reporting=0, fresh={})


def health_evidence(fleet: VirtualFleet, first_change: datetime | None, now: datetime) -> HealthEvidence:
    """Returns the health of the cluster, with the findings of unchanged nodes since the first change of a node."""
    unchanged = {
        name: tuple(
            one
            for one in _findings(node, _telemetry(node, fleet, now), now)
            if first_change and one.since >= first_change
        )
        if node.own_findings
        else ()
        for name, node in fleet.nodes.items()
        if node.version == fleet.from_version
    }
    seconds = int(RULES_RUN_EVERY.total_seconds())
    evaluated_at = now - timedelta(seconds=int(now.timestamp()) % seconds)
    return HealthEvidence(
        evaluated_at, has_source=fleet.has_source, trouble=fleet.trouble, peers=unchanged, past=fleet.past
    )


def service_level(nodes: list[VirtualNode], gate: Slo, fleet: VirtualFleet, now: datetime) -> ServiceLevel | None:
    """Returns the service of the slowest of some changed nodes, against its own past."""
    names = tuple(node.name for node in nodes)
    if not names:
        return None
    if not fleet.has_prometheus:
        trouble = "The cluster has no Prometheus as telemetry source."
        return ServiceLevel(now, names, trouble=trouble, cause="no-source")
    if fleet.trouble:
        return ServiceLevel(now, names, trouble=fleet.trouble, cause="no-answer")
    serving = [node for node in nodes if node.pods and node.pods_ready(now)]
    if not serving:
        return ServiceLevel(now, names)
    slowest = min(serving, key=lambda node: node.throughput_at(now) / node.throughput)
    usual, samples = usual_value(gate), max(ENOUGH_SAMPLES, gate.min_samples)
    noise, window = fleet.noise, int(now.timestamp() // gate.window.total_seconds())
    windows = gate.past_window / gate.window
    scatter = (noise.service(window), noise.service(names, "before", windows=windows)) if noise else (1.0, 1.0)
    value = scatter[0] * _measured(usual, slowest.throughput_at(now), is_higher_better=gate.is_higher_better)
    past = scatter[1] * _measured(usual, slowest.throughput, is_higher_better=gate.is_higher_better)
    return ServiceLevel(now, names, value, samples, now, past, samples)
