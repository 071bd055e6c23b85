"""Stages in progress without an approval that need one after all: no production node changes without a person.

Pools and the labels that put nodes into them change. Each change of a pool, each round, and the last check before a
release therefore look again.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django.db.models import F

from fleet.models import Cluster, Node, Pool
from fleet.pools.approval_rules import why_approval_is_needed
from kube import selectors
from people.models import AuditEntry
from rollouts.gates.approval import ApprovalGate
from rollouts.lifecycle import PlanState, StageState, TargetState
from rollouts.models import Plan, Stage
from rollouts.models.transitions import record_event
from wording.lists import names
from wording.numbers import count, either

GATE = ApprovalGate.key
OVER = (StageState.PASSED, StageState.ABANDONED)
BEGUN = (StageState.PROMOTING, StageState.SOAKING)


def why_node_needs_approval(cluster: Cluster, node: Node) -> str:
    """Returns why the node needs an approval; empty if it needs none. Its pools are prefetched."""
    return why_approval_is_needed(cluster, list(node.pools.all()))


def why_live(cluster: Cluster, uid: str, labels: Mapping[str, str]) -> str:
    """Returns the same for a node as the API server shows it: for the pools of its labels now and those of its row."""
    pools = list(Pool.objects.filter(cluster=cluster))
    known = set(Pool.objects.filter(cluster=cluster, nodes__uid=uid).values_list("pk", flat=True))
    return why_approval_is_needed(cluster, [pool for pool in pools if pool.pk in known or _selects(pool, labels)])


def _selects(pool: Pool, labels: Mapping[str, str]) -> bool:
    return selectors.parse(pool.selector).matches(labels)


def lock_plans(cluster: Cluster) -> None:
    """Locks the cluster's plans before the cluster's row, in the order that releases use."""
    list(
        Plan.objects.under_way().filter(cluster=cluster).select_for_update(no_key=True).order_by("pk").values_list("pk")
    )


def ask_from_now_on(cluster: Cluster, actor: str, now: datetime) -> None:
    """Applies a changed rule of a pool or cluster, inside its transaction.

    A round that read the earlier rule loses its turn, so it releases nothing on it.
    """
    for plan in Plan.objects.under_way().filter(cluster=cluster).select_for_update(no_key=True).order_by("pk"):
        plan.cluster = cluster
        if add_needed_approvals(plan, actor=actor, now=now):
            Plan.objects.filter(pk=plan.pk).update(epoch=F("epoch") + 1, lease_until=now, next_look_at=now)


def add_needed_approvals(plan: Plan, *, actor: str, now: datetime) -> bool:
    """Adds an approval to each stage that now needs one, and halts a stage that has begun; returns whether it did.

    It runs inside a transaction that has locked the plan.
    """
    found = to_ask(plan, plan.stages.all())
    for stage, asked in found:
        stage.plan = plan
        _halt_for_approval(stage, asked, actor=actor, now=now)
    return bool(found)


def to_ask(plan: Plan, stages: Iterable[Stage]) -> list[tuple[Stage, dict[str, str]]]:
    unasked = (
        stage
        for stage in stages
        if not stage.is_rollback and stage.state not in OVER and GATE not in stage.gate_options
    )
    return [(stage, asked) for stage in unasked if (asked := _nodes_needing_approval(plan, stage))]


def _nodes_needing_approval(plan: Plan, stage: Stage) -> dict[str, str]:
    uids = stage.targets.filter(state=TargetState.HELD).values("node_uid")
    nodes = Node.objects.filter(cluster=plan.cluster_id, uid__in=uids).prefetch_related("pools")
    return {node.name: reason for node in nodes if (reason := why_node_needs_approval(plan.cluster, node))}


def _halt_for_approval(stage: Stage, asked: Mapping[str, str], *, actor: str, now: datetime) -> None:
    plan = stage.plan
    options: dict[str, Any] = {GATE: {}, **stage.gate_options}
    Stage.objects.filter(pk=stage.pk).update(gate_options=options)
    first = next(iter(asked.values()))
    needs = either(len(asked), "needs", "need")
    reason = f"{stage.name}: {names(tuple(sorted(asked)))} {needs} an approval before the change: {first}."
    record_event(plan=plan, stage=stage, what="stage", was="", to="approval", now=now, actor=actor, reason=reason)
    evidence = {"stage": stage.name, "nodes": sorted(asked)}
    AuditEntry.record(plan.mark, verb="ask", actor=actor, reason=reason, evidence=evidence, now=now)
    if plan.state == PlanState.PROMOTING and stage.state in BEGUN:
        reason = (
            f"{reason} {count(len(asked), 'node')} of the stage must still change. After a resume the stage "
            "needs an approval."
        )
        stage.move(StageState.HALTED, now=now, actor=actor, reason=reason)
        plan.move(PlanState.HALTED, now=now, actor=actor, reason=reason)
