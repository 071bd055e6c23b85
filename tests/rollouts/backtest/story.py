"""A plan whose canary was idle and passed, and whose pool stage halted: the rows that it left."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import msgspec

from fleet.models import Pod
from health.models import Finding
from rollouts.commands.stage_drafts import StageDraft
from rollouts.engine.looks import RecordedNode, RecordedStage
from rollouts.gates.base import ValidatorEvidence
from rollouts.lifecycle import PlanState, StageState, TargetState
from rollouts.models import GateLook, Plan, Stage, Target
from tests.make import NOON, a_finding, a_node_event, a_user
from tests.rollouts.make import NEW, a_telemetry
from tests.rollouts.rows import a_driver_cluster, a_started_plan

FEW_GATES: Mapping[str, Any] = {"approval": {}, "driver_version": {}, "failure_budget": {"tolerate": 0}}
WAY = (TargetState.RELEASING, TargetState.RELEASED, TargetState.CHANGING, TargetState.CHANGED)
PASSED, HALTED = timedelta(minutes=40), timedelta(minutes=60)


def a_halted_plan(*, nodes: int = 4, gates: Mapping[str, Any] = FEW_GATES) -> Plan:
    """The canary node changes at 12:10 and passes at 12:40. Then one of two nodes fails. The plan halts at 13:00."""
    cluster = a_driver_cluster(nodes=nodes)
    stages = [
        StageDraft("Canary", "canary", count=1, gate_options=gates),
        StageDraft("Rest", "pool", gate_options=gates),
    ]
    plan = a_started_plan(cluster, a_user(role="operator"), stages=stages)
    _move(plan, PlanState.PROMOTING, 1)
    canary, rest = plan.stages.forward()
    _move(canary, StageState.OPENING, 1)
    _move(canary, StageState.PROMOTING, 5)
    change(canary.targets.get(), 5, 10)
    _move(canary, StageState.SOAKING, 10)
    _move(canary, StageState.PASSED, 40)
    _move(rest, StageState.OPENING, 41)
    _move(rest, StageState.PROMOTING, 45)
    good, bad = rest.targets.all()[:2]
    change(good, 46, 52)
    change(bad, 46, 52)
    _move(bad, TargetState.FAILED, 58)
    _move(rest, StageState.HALTED, 60)
    _move(plan, PlanState.HALTED, 60)
    Pod.objects.filter(cluster=cluster, operand="driver").update(created_at=_at(60))  # each took a new one
    return plan


def change(target: Target, released: float, changed: float) -> None:
    """Moves a target from its hold to its new driver, with its baseline and its node's timeline."""
    node = target.stage.plan.cluster.nodes.get(uid=target.node_uid)
    baseline = {
        "at": _at(released).isoformat(), "driver_version": node.driver_version, "allocatable": node.allocatable,
        "workloads": {}, "operands": [], "findings": {}, "traits": {"kernel": node.kernel}, "owners_ready": {},
    }  # fmt: skip
    Target.objects.filter(pk=target.pk).update(baseline=baseline, released_at=_at(released))
    for state, minute in zip(WAY, (released, released + 1, released + 2, changed), strict=True):
        _move(target, state, minute)
    detail = {"column": "driver_version", "was": node.driver_version, "is": NEW}
    a_node_event(node, at=_at(changed - 1), detail=detail, kind="version")


def an_xid(plan: Plan, name: str = "node-0", *, minute: float = 20, **given: Any) -> Finding:
    node = plan.cluster.nodes.get(name=name)
    row = {"rule": "gpu-xid", "severity": "critical", "title": f"GPU 3 of {name}: Xid 79", "facts": {"xid": 79}}
    row |= {"since": _at(minute), "opened_at": _at(minute + 1), "confirmed_at": _at(minute + 1)}
    return a_finding(plan.cluster, f"GPU 3 of {name}", node=node, **row | given)


def a_look(plan: Plan, minute: float, *, name: str = "node-0", stage: int = 0, **given: Any) -> None:
    """The gates of the stage look at a changed node that has everything back, except for what is given."""
    target, at = plan.stages.get(index=stage).targets.get(node_name=name), _at(minute)
    ready = ValidatorEvidence("after", is_ready=True, started_at=_at(9), restarts=0)
    row: dict[str, Any] = {"operands": (), "workloads": (), "validator": ready, "driver_started_at": _at(8)}
    seen = RecordedNode(**row | {"traits": {}, "is_held_by_others": False, "telemetry": a_telemetry()} | given)
    of_stage = RecordedStage({}, {}, {}, has_health=True, has_source=True, rules_ran=True)
    for number, (uid, its) in enumerate(((target.node_uid, seen), ("", of_stage)), 1):
        GateLook.objects.create(stage=target.stage, node_uid=uid, at=at, number=number, seen=msgspec.to_builtins(its))


def _move(row: Plan | Stage | Target, to: Any, minute: float) -> None:
    row.move(to, now=_at(minute), actor="quarterdeck", reason="It is so.")


def _at(minute: float):
    return NOON + timedelta(minutes=minute)
