"""The evidence that a round sees of a virtual fleet, as the engine reads it from rows and the cluster. Pure."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from health.rules.base import Severity
from health.rules.gpus.ecc_uncorrected import EccUncorrected
from health.rules.gpus.xid import LastXid
from health.telemetry.metrics import METRICS
from operations.test_jobs.test_progress import TestJobOutcome
from rollouts.gates.base import (
    Baseline,
    FindingEvidence,
    GpuTelemetry,
    HealthEvidence,
    OperandEvidence,
    PodEvidence,
    ServiceLevel,
    TargetEvidence,
    TestJobEvidence,
    ValidatorEvidence,
)
from rollouts.lifecycle import TargetState
from rollouts.rehearsal.faults import Effect
from rollouts.rehearsal.fleet import HARMLESS_AFTER, VALIDATION, VALIDATION_LIMIT, VirtualFleet, VirtualNode

GPU = "nvidia.com/gpu"
OPERANDS = ("Device plugin", "Driver", "Validator")
ALL_READY = tuple(OperandEvidence(name, is_ready=True) for name in OPERANDS)
EXPORTED = frozenset(METRICS)
RULES_RUN_EVERY = timedelta(seconds=30)
USUAL_RATE = 1000.0  # tokens per second of a node, as its test Job measures them
ENOUGH_SAMPLES = 100.0
GPU_WORDS = {Effect.XID: (LastXid.key, "Xid 79"), Effect.ECC: (EccUncorrected.key, "uncorrectable ECC errors")}


@dataclass
class VirtualTarget:
    """A node in its stage, as the plan has it."""

    node: VirtualNode
    state: TargetState
    since: datetime
    baseline: Baseline | None = None
    tested_since: datetime | None = None  # since when its test Job runs; None: none was created
    has_served: bool = False


def baseline_of(node: VirtualNode, now: datetime) -> Baseline:
    """Returns the state of a node before its release."""
    findings = {"node-not-ready": Severity.CRITICAL.value} if node.is_sick_before else {}
    return Baseline(
        at=now,
        driver_version=node.version,
        allocatable={GPU: node.gpus},
        workloads={owner_of(node): node.pods} if node.pods else {},
        operands=OPERANDS,
        validator_uid="before",
        findings=findings,
    )


def owner_of(node: VirtualNode) -> str:
    return f"ReplicaSet tenants/model-on-{node.name}"


def target_evidence(target: VirtualTarget, fleet: VirtualFleet, now: datetime) -> TargetEvidence:
    node = target.node
    ready = node.is_ready(now)
    validator, fails = None, node.has(Effect.VALIDATOR_FAILS, now=now)
    began = (node.changed_at or now) - (VALIDATION_LIMIT if fails else node.pace.validation)
    if node.is_changed:
        validator = ValidatorEvidence("after", is_ready=ready and not fails, started_at=began, restarts=0)
    elif node.state != VALIDATION:
        validator = ValidatorEvidence("before", is_ready=True, started_at=now - timedelta(days=1), restarts=0)
    missing = 1 if node.has(Effect.GPU_MISSING, now=now) else 0
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
        allocatable={GPU: node.gpus - missing},
        operands=ALL_READY,
        workloads=_pods(node, now) if target.baseline else (),
        validator=validator,
        driver_started_at=began - node.pace.driver,
        is_unschedulable=node.is_cordoned or node.is_out,
        is_cordoned_by_us=node.is_cordoned,
        test_job=_test_job(target, now),
        has_served=target.has_served,
        facts=node.facts,
        findings=_findings(node, now),
        telemetry=None if fleet.telemetry_is_blind else _telemetry(node, now),
    )


def _pods(node: VirtualNode, now: datetime) -> tuple[PodEvidence, ...]:
    if not node.pods_came(now):
        return ()
    ready, restarts = node.pods_ready(now), node.restarts(now)
    reason = "CrashLoopBackOff" if restarts else ""
    return tuple(
        PodEvidence(
            f"tenants/model-on-{node.name}-{number}",
            owner_of(node),
            is_ready=ready,
            started_at=node.open_since or now,
            restarts=restarts,
            reason=reason,
        )
        for number in range(node.pods)
    )


def _test_job(target: VirtualTarget, now: datetime) -> TestJobEvidence | None:
    since, node = target.tested_since, target.node
    if since is None:
        return None
    done_at = since + node.pace.test
    if now < done_at:
        return TestJobEvidence(None, "It runs.")
    if node.has(Effect.PODS_CRASH, now=done_at):
        return TestJobEvidence(TestJobOutcome.FAILED, "It failed.", "CUDA error: no kernel image", told_at=done_at)
    rate = round(USUAL_RATE * node.throughput_at(done_at), 1)
    return TestJobEvidence(TestJobOutcome.PASSED, "It completed.", told_at=done_at, value=rate)


def _findings(node: VirtualNode, now: datetime) -> tuple[FindingEvidence, ...]:
    found = []
    if node.is_sick_before:
        before = now - timedelta(days=3)
        title = f"{node.name} is often not Ready"
        found.append(FindingEvidence("node-not-ready", "node-not-ready", Severity.CRITICAL, title, before))
    if node.has_harmless_finding and node.changed_at and now >= node.changed_at + HARMLESS_AFTER:
        title = f"GPU 2 of {node.name} uses nearly all of its memory"
        found.append(FindingEvidence("memory", "gpu-memory", Severity.NOTE, title, node.changed_at))
    first = node.began(now)
    if first is not None and node.fault is not None and node.fault.effect in GPU_WORDS:
        rule, words = GPU_WORDS[node.fault.effect]
        found.append(FindingEvidence(f"{rule} 3", rule, Severity.CRITICAL, f"GPU 3 of {node.name}: {words}", first))
    return tuple(found)


def _telemetry(node: VirtualNode, now: datetime) -> GpuTelemetry:
    silent = node.has(Effect.EXPORTER_SILENT, now=now)
    fresh = {} if silent else dict.fromkeys(EXPORTED, node.gpus)
    return GpuTelemetry(node.gpus, 0 if silent else node.gpus, fresh, EXPORTED)


def health_evidence(fleet: VirtualFleet, now: datetime) -> HealthEvidence:
    """Returns the health of the cluster. Unchanged nodes have no finding that is newer than the plan."""
    unchanged = {name: () for name, node in fleet.nodes.items() if node.version == fleet.from_version}
    seconds = int(RULES_RUN_EVERY.total_seconds())
    evaluated_at = now - timedelta(seconds=int(now.timestamp()) % seconds)
    trouble = "Prometheus does not answer." if fleet.telemetry_is_blind else ""
    return HealthEvidence(evaluated_at, has_source=True, trouble=trouble, peers=unchanged)


def service_level(nodes: list[VirtualNode], fleet: VirtualFleet, now: datetime) -> ServiceLevel | None:
    """Returns the throughput of the slowest of some changed nodes, against its own past."""
    names = tuple(node.name for node in nodes)
    if not names:
        return None
    if fleet.telemetry_is_blind:
        return ServiceLevel(now, names, trouble="Prometheus does not answer.", cause="no-answer")
    serving = [node for node in nodes if node.pods and node.pods_ready(now)]
    if not serving:
        return ServiceLevel(now, names)
    slowest = min(serving, key=lambda node: node.throughput_at(now) / node.throughput)
    value, past = USUAL_RATE * slowest.throughput_at(now), USUAL_RATE * slowest.throughput
    return ServiceLevel(now, names, value, ENOUGH_SAMPLES, now, past, ENOUGH_SAMPLES)
