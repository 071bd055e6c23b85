"""Rows of a cluster with one driver object, and plans in any state."""

from datetime import datetime
from typing import Any

from fleet.models import Cluster, OperandRevision
from kube.resources import CLUSTER_POLICIES, DEPLOYMENTS, NVIDIA_DRIVERS
from rollouts.commands.plan_drafts import draft
from rollouts.commands.stage_drafts import StageDraft
from rollouts.models import GateAnswer, Hold, Plan, Stage, StageKind
from rollouts.queries.driver_nodes import JUDGED_KINDS
from tests.make import (
    NOON,
    a_bookmark,
    a_cluster,
    a_driver_object,
    a_pod,
    an_operand,
    begun,
    some_nodes,
    somebody_who_approves,
    unsaved_node,
)
from tests.rollouts.make import NEW, OLD_HASH
from tests.saved_rows import build_once

POLICY = {"autoUpgrade": True, "maxParallelUpgrades": 2, "maxUnavailable": "50%"}
SELECTOR = {"nvidia.com/gpu.product": "NVIDIA-H200"}
GATES: dict[str, dict[str, Any]] = {"approval": {"needed": 1}, "driver_version": {}}
CANARY = StageDraft("Canary", StageKind.CANARY, count=1, gate_options=GATES)
REST = StageDraft("Rest", StageKind.POOL, gate_options=GATES)


def a_driver_cluster(*, nodes: int = 3, seen_at: datetime | None = NOON, **driver: Any) -> Cluster:
    somebody_who_approves()
    cluster = a_cluster(seen_at=None)
    if seen_at:
        for kind in (*JUDGED_KINDS, NVIDIA_DRIVERS.name, CLUSTER_POLICIES.name, DEPLOYMENTS.name):
            a_bookmark(cluster, kind, last_seen_at=seen_at)
    driver_object = a_driver_object(cluster, **driver)
    a_driver_object(
        cluster, "cluster-policy", kind="ClusterPolicy", uses_driver_crd=True, upgrade_policy=POLICY, version=""
    )
    daemonset = an_operand(cluster, owner_uid=driver_object.uid, node_selector=SELECTOR, desired=nodes)
    OperandRevision.objects.create(
        cluster=cluster, uid="uid-of-a-revision", owner_uid=daemonset.uid, revision=1, revision_hash=OLD_HASH,
        changed_at=NOON,
    )  # fmt: skip
    unsaved = [unsaved_node(cluster, f"node-{number}") for number in range(nodes)]
    for number, node in enumerate(some_nodes(unsaved)):
        a_pod(node, f"driver-{number}", namespace="gpu-operator", gpus=0, operand="driver", owner_uid=daemonset.uid,
              revision_hash=OLD_HASH)  # fmt: skip
    return cluster


def a_draft(cluster: Cluster, actor, *, stages=(CANARY, REST), to_version: str = NEW, now: datetime = NOON) -> Plan:
    driver_object = cluster.driver_objects.get(kind="NVIDIADriver")
    return draft(
        cluster=cluster, title="", driver_object=driver_object, to_version=to_version, stages=stages, actor=actor,
        now=now,
    )  # fmt: skip


def a_started_plan(cluster: Cluster, actor, *, now: datetime = NOON, **given: Any) -> Plan:
    def build() -> Plan:
        return begun(a_draft(cluster, actor, **given), actor, reason="It is time.", now=now)

    return build_once(f"plan started at {now} with {sorted(given.items())}", Plan, build, on=(cluster, actor))


def in_state(plan: Plan, state: str, *, is_written: bool = True) -> Plan:
    """As the engine would have left it, without the way there."""
    at = NOON if is_written else None
    Plan.objects.filter(pk=plan.pk).update(state=state, write_intended_at=at, armed_since=at)
    plan.refresh_from_db()
    return plan


def opened(plan: Plan, index: int = 0) -> Stage:
    """The stage that waits for its approval."""
    Plan.objects.filter(pk=plan.pk, state="holding").update(state="promoting", write_intended_at=NOON)
    Stage.objects.filter(plan=plan, index=index).update(state="opening")
    return Stage.objects.select_related("plan").get(plan=plan, index=index)


def an_item(label: str, value: str | int, unit: str = "") -> dict[str, str | int]:
    return {"label": label, "value": value, "unit": unit}


def answered(stage: Stage, gate: str = "driver_version", answer: str = "pass", **given: Any) -> GateAnswer:
    GateAnswer.objects.filter(stage=stage, gate=gate).update(is_current=False)
    row = {"title": "So it is", "since": NOON, "at": NOON, "evidence": [an_item("Changed nodes", 1)]}
    return GateAnswer.objects.create(stage=stage, gate=gate, answer=answer, **row | given)


def wanted(plan: Plan) -> dict[str, bool]:
    return dict(Hold.objects.filter(plan=plan).values_list("node_name", "is_wanted"))
