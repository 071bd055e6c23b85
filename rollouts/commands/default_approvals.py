"""Adds an approval to the stages of a draft that need one and name none."""

from collections.abc import Sequence
from dataclasses import replace

from fleet.models import ApprovalRule, Cluster, Pool
from fleet.pools.approval_rules import rule_of
from rollouts.approvals.automatic_approvals import GATE
from rollouts.commands.stage_drafts import StageDraft


def with_approvals(cluster: Cluster, stages: Sequence[StageDraft]) -> list[StageDraft]:
    """Returns the stages, each with an approval unless it may go without. One query."""
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
