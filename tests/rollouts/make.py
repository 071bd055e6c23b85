"""Pure builders of evidence and snapshots. Each is valid and in good order; name only what the test is about."""

from collections.abc import Collection, Iterable
from dataclasses import fields, replace
from datetime import timedelta
from typing import Any

from health.telemetry.metrics import METRICS
from operations.test_jobs.test_progress import TestJobOutcome
from rollouts.components.driver_crd import DriverCrd
from rollouts.components.throttle import UpgradePolicy
from rollouts.engine.snapshot import (
    NodeSnapshot,
    OrdersSnapshot,
    Snapshot,
    StageSnapshot,
    TemplatesSnapshot,
    VersionSnapshot,
)
from rollouts.gates.base import (
    ApprovalEvidence,
    Baseline,
    Evidence,
    FindingEvidence,
    GpuTelemetry,
    HealthEvidence,
    HoursEvidence,
    MeasuredHour,
    OperandEvidence,
    PodEvidence,
    SeenWork,
    ServiceEvidence,
    ServiceLevel,
    TargetEvidence,
    TestJobEvidence,
    ValidatorEvidence,
)
from rollouts.gates.driver_version import DriverVersion
from rollouts.gates.slo import SLOS
from rollouts.lifecycle import PlanState, StageState, TargetState
from tests.make import NOON
from wording.reports import Report

OLD, NEW = "570.172.08", "580.95.05"
OLD_HASH, NEW_HASH = "hash-old", "hash-new"
COMPONENT = DriverCrd("default")
DAEMONSET = "uid-of-the-driver-daemonset"
OPERANDS = ("Device plugin", "Driver", "Validator")
TRAITS = {"kernel": "5.15.0-151", "OS image": "Ubuntu 22.04.5 LTS", "MIG configuration": ""}


def a_pod_on_it(name: str = "team-a/model-0", **given: Any) -> PodEvidence:
    row: dict[str, Any] = {
        "owner": "ReplicaSet team-a/model",
        "is_ready": True,
        "started_at": NOON - timedelta(minutes=1),
        "restarts": 0,
    }
    return PodEvidence(name=name, **row | given)


def a_baseline(**given: Any) -> Baseline:
    row: dict[str, Any] = {
        "at": NOON - timedelta(hours=1),
        "driver_version": OLD,
        "allocatable": {"nvidia.com/gpu": 8},
        "workloads": {},
        "operands": OPERANDS,
        "validator_uid": "uid-before",
        "traits": TRAITS,
        "findings": {},
    }
    return Baseline(**row | given)


def a_validator(**given: Any) -> ValidatorEvidence:
    """A run since the change, through with all of its steps."""
    row: dict[str, Any] = {
        "uid": "uid-now",
        "is_ready": True,
        "started_at": NOON - timedelta(minutes=2),
        "restarts": 0,
    }
    return ValidatorEvidence(**row | given)


def ready(*operands: str) -> tuple[OperandEvidence, ...]:
    return tuple(OperandEvidence(operand, is_ready=True) for operand in operands)


def a_telemetry(gpus: int = 8, *, without: Collection[str] = (), **given: Any) -> GpuTelemetry:
    """All GPUs of a node report every metric but these."""
    exported = frozenset(METRICS).difference(without)
    row: dict[str, Any] = {"reporting": gpus, "fresh": dict.fromkeys(exported, gpus), "exported": exported}
    return GpuTelemetry(gpus=gpus, **row | given)


def a_health(**given: Any) -> HealthEvidence:
    """The rules run, with the telemetry of a source."""
    row: dict[str, Any] = {"evaluated_at": NOON, "has_source": True}
    return HealthEvidence(**row | given)


def a_service_level(*nodes: str, **given: Any) -> ServiceLevel:
    """A service that is as fast as before, measured just now."""
    row: dict[str, Any] = {
        "value": 0.4,
        "samples": 500,
        "newest_at": NOON - timedelta(seconds=20),
        "baseline": 0.4,
        "baseline_samples": 500,
    }
    return ServiceLevel(NOON, nodes or ("node-1",), **row | given)


def a_finding_on_it(title: str = "GPU 3 of node-1: Xid 79", **given: Any) -> FindingEvidence:
    row: dict[str, Any] = {
        "key": "gpu-xid GPU-3 79",
        "rule": "gpu-xid",
        "severity": "critical",
        "since": NOON - timedelta(seconds=30),
    }
    return FindingEvidence(title=title, **row | given)


def a_target(name: str = "node-1", **given: Any) -> TargetEvidence:
    """A node that took the new driver and has everything back."""
    row: dict[str, Any] = {
        "uid": f"uid-of-{name}",
        "state": TargetState.CHANGED,
        "state_since": NOON - timedelta(minutes=1),
        "baseline": a_baseline(),
        "is_seen": True,
        "driver_version": NEW,
        "upgrade_state": "upgrade-done",
        "is_ready": True,
        "allocatable": {"nvidia.com/gpu": 8},
        "operands": ready(*OPERANDS),
        "validator": a_validator(),
        "driver_started_at": NOON - timedelta(minutes=5),
        "traits": TRAITS,
        "test_job": TestJobEvidence(TestJobOutcome.PASSED, "It completed."),
        "work": SeenWork(timedelta(hours=8)),
        "telemetry": a_telemetry(),
    }
    return TargetEvidence(name=name, **row | given)


def a_held_target(name: str = "node-1", **given: Any) -> TargetEvidence:
    row: dict[str, Any] = {
        "state": TargetState.HELD,
        "baseline": None,
        "driver_version": OLD,
        "upgrade_state": "upgrade-required",
    }
    return a_target(name, **row | given)


def an_approval(by: str = "amy", **given: Any) -> ApprovalEvidence:
    row: dict[str, Any] = {"at": NOON, "is_rejection": False, "reason": "", "is_by_author": False}
    return ApprovalEvidence(by=by, **row | given)


def some_hours(targets: Iterable[TargetEvidence]) -> HoursEvidence:
    """Three hours before the release of each target and two after its change. What is not Ready is hotter."""
    found = {}
    for target in targets:
        if target.baseline:
            begins = [target.baseline.at - timedelta(hours=number) for number in (3, 2, 1)]
            begins += [max(target.baseline.at, target.state_since) + timedelta(hours=number) for number in (0, 1)]
            warm = (60.0, 60.0, 60.0, *(2 * (60.0 if target.is_ready else 90.0,)))
            hours = (MeasuredHour(at, 0.8, {"temperature": each}) for at, each in zip(begins, warm, strict=True))
            found[target.name] = tuple(hours)
    return HoursEvidence(found)


def evidence(*targets: TargetEvidence, **given: Any) -> Evidence:
    row: dict[str, Any] = {
        "hours": some_hours(targets),
        "seen_at": NOON,
        "to_version": NEW,
        "health": a_health(),
        "service_level": a_service_level(),
        "service_windows": (),
    } | given
    service = ServiceEvidence(row.pop("service_level"), row.pop("service_windows"))
    return Evidence(targets=targets, **{"services": {gate.key: service for gate in SLOS}} | row)


def a_node_snapshot(name: str = "node-1", **given: Any) -> NodeSnapshot:
    """A node that is held by us and waits in the operator's queue with its old driver."""
    row: dict[str, Any] = {
        "uid": f"uid-of-{name}",
        "has_label": True,
        "label_is_ours": True,
        "upgrade_state": "upgrade-required",
        "is_ready": True,
        "is_unschedulable": False,
        "driver_version": OLD,
        "pod_hash": OLD_HASH,
        "hold_wanted": True,
    }
    shown = row | given
    return NodeSnapshot(name=name, phase=COMPONENT.phase(shown["upgrade_state"]), **shown)


def a_changed_node(name: str = "node-1", **given: Any) -> NodeSnapshot:
    row: dict[str, Any] = {
        "has_label": False,
        "label_is_ours": False,
        "upgrade_state": "upgrade-done",
        "driver_version": NEW,
        "pod_hash": NEW_HASH,
        "hold_wanted": False,
    }
    return a_node_snapshot(name, **row | given)


def a_stage(*targets: TargetEvidence, index: int = 0, **given: Any) -> StageSnapshot:
    """A canary that is being promoted, evaluated by the driver version alone."""
    row: dict[str, Any] = {
        "name": f"Stage {index}",
        "is_rollback": False,
        "state": StageState.PROMOTING,
        "state_since": NOON - timedelta(minutes=5),
        "wait_timeout": timedelta(hours=1),
        "max_unavailable": 1,
        "gates": (DriverVersion(),),
    }
    written = row | given
    shown = written.pop("evidence", None) or evidence(*targets)
    return StageSnapshot(index=index, evidence=shown, **written)


def a_rollback_stage(*targets: TargetEvidence, **given: Any) -> StageSnapshot:
    row: dict[str, Any] = {"index": 9, "name": "Rollback", "is_rollback": True, "state": StageState.WAITING}
    return a_stage(*targets, **row | {"evidence": evidence(*targets, to_version=OLD)} | given)


def a_policy(**given: Any) -> UpgradePolicy:
    row: dict[str, Any] = {"off": None, "max_parallel": 4, "max_unavailable": None}
    return UpgradePolicy(**row | given)


def a_snapshot(*stages: StageSnapshot, nodes: tuple[NodeSnapshot, ...] = (), **given: Any) -> Snapshot:
    """A plan in the middle of its promotion: the new version is written and the template has followed."""
    has_rollback_stage = any(stage.is_rollback for stage in stages)
    snapshot = Snapshot(
        component=COMPONENT,
        seen_at=NOON,
        stale_reason="",
        state=PlanState.PROMOTING,
        version=VersionSnapshot(OLD, NEW, NEW, write_intended=True),
        templates=TemplatesSnapshot(
            {DAEMONSET: OLD_HASH}, {DAEMONSET: NEW_HASH}, (), daemonsets={node.uid: DAEMONSET for node in nodes}
        ),
        orders=OrdersSnapshot(NOON - timedelta(minutes=10), timedelta(days=7)),
        policy=a_policy(),
        nodes=nodes,
        stages=stages if has_rollback_stage else (*stages, a_rollback_stage()),
    )
    return with_facts(snapshot, **given)


# How tests name what a snapshot has by topic.
TOPICS = {
    "version": {
        "from_version": "old",
        "to_version": "new",
        "object_version": "current",
        **{name: name for name in ("write_intended", "object_trouble", "template_change", "handed_to", "handed_by")},
    },
    "templates": {
        "recorded_hashes": "recorded",
        "newest_hashes": "newest",
        "unsettled": "unsettled",
        "sealed_hashes": "sealed",
        "pod_daemonsets": "daemonsets",
    },
    "orders": {field.name: field.name for field in fields(OrdersSnapshot)},
    "exclusions": {"exclusions": "in_force", "exclusions_ended": "back", "exclusions_left": "left"},
    "cordons": {"cordons": "in_force", "cordons_left": "left", "our_cordons": "ours"},
}


def with_facts(snapshot: Snapshot, **given: Any) -> Snapshot:
    """Returns the snapshot with other facts, each by a name of TOPICS or of a field."""
    for topic, names in TOPICS.items():
        if told := {field: given.pop(name) for name, field in names.items() if name in given}:
            given[topic] = replace(getattr(snapshot, topic), **told)
    return replace(snapshot, **given)


def not_yet_written(snapshot: Snapshot, **given: Any) -> Snapshot:
    row: dict[str, Any] = {
        "state": PlanState.HOLDING,
        "object_version": OLD,
        "write_intended": False,
        "newest_hashes": {DAEMONSET: OLD_HASH},
    }
    return with_facts(snapshot, **row | given)


def put_back(snapshot: Snapshot, **given: Any) -> Snapshot:
    """The old version is in the object again, and the template has followed."""
    row: dict[str, Any] = {
        "state": PlanState.ROLLING_BACK,
        "object_version": OLD,
        "newest_hashes": {DAEMONSET: OLD_HASH},
    }
    return with_facts(snapshot, **row | given)


def values_of(report: Report) -> dict[str, str | int | float]:
    """The values of its evidence by label."""
    return {item.label: item.value for item in report.evidence}


def steps_of(report: Report) -> str:
    return " ".join(report.steps)


def lines_of(report: Report) -> tuple[str, ...]:
    """The evidence as "label: value"."""
    return tuple(f"{item.label}: {item.value}" for item in report.evidence)
