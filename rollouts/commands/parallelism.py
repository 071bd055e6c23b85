"""How many nodes of each unfinished stage may be unavailable at a time."""

from __future__ import annotations

from collections.abc import Mapping

from fleet.models import DriverObject
from rollouts.ledger.disruptions import read_budgets
from rollouts.lifecycle import TargetState
from rollouts.models import Plan
from rollouts.node_order.node_selection import AtOnce, at_once
from rollouts.queries.driver_nodes import nodes_of, upgrade_policy
from rollouts.queries.plan_view import PlanOnPage, StageOnPage
from rollouts.queries.restraints import GOES_BACK


def at_once_now(plan: Plan, on_page: PlanOnPage, driver_object: DriverObject | None) -> Mapping[int, AtOnce]:
    """Returns the limits by stage key. Twelve queries at most; none if no node remains."""
    back = plan.state in GOES_BACK
    ahead = [(one.stage, _names(one)) for one in on_page.ahead if one.stage.is_rollback == back]
    asked = [name for _, names in ahead for name in names]
    if driver_object is None or not asked:
        return {}
    budgets = read_budgets(plan.cluster_id, asked, goes_back=back)
    policy, fleet = upgrade_policy(driver_object), nodes_of(plan).count()
    return {stage.pk: at_once(stage.max_unavailable, names, policy, budgets, fleet=fleet) for stage, names in ahead}


def _names(one: StageOnPage) -> list[str]:
    return [target.node_name for target in one.targets if target.state != TargetState.EXCLUDED]
