"""Stages that nobody is asked about: only where cluster or pool say `approval: none`, and never in production."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db.models import F

from fleet.models import ApprovalRule, Cluster, Node, Pool
from fleet.pools.asking import rule_of, why_asked
from people.models import AuditEntry
from rollouts.gates.base import count, names
from rollouts.lifecycle import StageState
from rollouts.models import Plan, Stage
from rollouts.models.moving import record_event
from rollouts.notes import Note

if TYPE_CHECKING:
    from rollouts.steering.drafting import StageDraft

GATE = "approval"
NOT_BEGUN = (StageState.WAITING, StageState.OPENING)


def with_approvals(cluster: Cluster, stages: Sequence["StageDraft"]) -> list["StageDraft"]:
    """Each stage with an approval, but those that may go without. One query."""
    pools = {pool.pk: pool for pool in Pool.objects.filter(cluster=cluster)}
    return [
        stage
        if GATE in stage.gate_options or _may_leave_out(cluster, pools.get(stage.pool_id or 0))
        else replace(stage, gate_options={GATE: {}, **stage.gate_options})
        for stage in stages
    ]


def _may_leave_out(cluster: Cluster, pool: Pool | None) -> bool:
    if pool is None:
        return cluster.approval == ApprovalRule.NONE
    return rule_of(cluster, pool) == ApprovalRule.NONE and not pool.is_production


def unasked(stages: Iterable[Stage]) -> list[Stage]:
    return [stage for stage in stages if GATE not in stage.gate_options]


def must_ask(plan: Plan, stages: Iterable[Stage], picked: Mapping[int, Sequence[Node]]) -> Iterator[Note]:
    """Stages without an approval that need one. Pools of the nodes are prefetched."""
    for stage in unasked(stages):
        asked = {node.name: why for node in picked.get(stage.index, ()) if (why := _why(plan.cluster, node))}
        if asked:
            first = next(iter(asked.values()))
            sentence = f"{stage.name} has no approval, and {names(tuple(asked))} must not change unasked: {first}."
            yield Note("unasked", sentence, "Edit the stage: at least one approval.")


def goes_unasked(plan: Plan, stages: Iterable[Stage]) -> Iterator[Note]:
    for stage in unasked(stages):
        sentence = f"{stage.name} starts without anybody being asked: {said_by(plan, stage)} says “approval: none”."
        yield Note("approval-none", sentence, "Add an approval, if somebody else should look first.", is_grave=True)


def said_by(plan: Plan, stage: Stage) -> str:
    if stage.pool is not None and stage.pool.approval == ApprovalRule.NONE:
        return f"pool {stage.pool.name}"
    return f"cluster {plan.cluster.name}"


def _why(cluster: Cluster, node: Node) -> str:
    return why_asked(cluster, list(node.pools.all()))


def ask_from_now_on(cluster: Cluster, actor: str, now: datetime) -> None:
    """A pool or cluster says another thing than before: stages under way that have not begun wait for an approval.

    A round that looked before this has lost its turn, so that it opens nothing on what it saw.
    """
    stages = Stage.objects.forward().filter(plan__in=Plan.objects.under_way().filter(cluster=cluster))
    waiting = stages.filter(state__in=NOT_BEGUN, waves=None).exclude(gate_options__has_key=GATE)
    for stage in waiting.select_related("plan__cluster"):
        uids = stage.targets.values_list("node_uid", flat=True)
        nodes = Node.objects.filter(cluster=cluster, uid__in=list(uids)).prefetch_related("pools")
        asked = {node.name: why for node in nodes if (why := _why(cluster, node))}
        if asked:
            _ask(stage, asked, actor=actor, now=now)


def _ask(stage: Stage, asked: Mapping[str, str], *, actor: str, now: datetime) -> None:
    options: dict[str, Any] = {GATE: {}, **stage.gate_options}
    if not Stage.objects.filter(pk=stage.pk, state__in=NOT_BEGUN).update(gate_options=options):
        return  # it has begun in the meantime: what goes is under way
    plan = stage.plan
    Plan.objects.filter(pk=plan.pk).update(turn=F("turn") + 1, lease_until=now, next_look_at=now)
    because = f"{count(len(asked), 'node')} must not change unasked any more: {next(iter(asked.values()))}."
    record_event(plan=plan, stage=stage, what="stage", was="", to="approval", now=now, actor=actor, because=because)
    evidence = {"stage": stage.name, "nodes": sorted(asked)}
    AuditEntry.record(plan.mark, verb="ask", actor=actor, because=because, evidence=evidence, now=now)
