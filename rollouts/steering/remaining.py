"""What is left of a plan, as its duration is reckoned from."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from fleet.freshness.sight import ClusterSight, sight_of_cluster
from fleet.models import Bookmark, DriverObject
from rollouts.gates.soak import Soak
from rollouts.lifecycle import IN_FLIGHT, PlanState, StageState, TargetState
from rollouts.models import Plan, Stage
from rollouts.queries import PlanOnPage, StageOnPage, upgrade_policy
from rollouts.steering.duration import Duration, StageTime, duration_of
from rollouts.steering.holding import HoldProgress, holding_of

MOVING = frozenset({PlanState.HOLDING, PlanState.PROMOTING, PlanState.ROLLING_BACK})
HOLDS_ALL = frozenset({PlanState.HOLDING, PlanState.ROLLING_BACK})  # before it does anything else
OVER = (StageState.PASSED, StageState.ABANDONED)


def stage_time(stage: Stage, nodes: int, policy: Mapping[str, Any]) -> StageTime:
    """A stage that has not begun. `policy`: the operator's; its maxParallelUpgrades of 0 is no limit."""
    parallel = int(policy.get("maxParallelUpgrades", 1)) or nodes
    soak = next((gate.duration for gate in stage.gates if isinstance(gate, Soak) and not gate.advisory), timedelta())
    return StageTime(nodes, min(stage.max_unavailable, parallel), soak, is_asked="approval" in stage.gate_options)


def remaining(
    plan: Plan, on_page: PlanOnPage, driver_object: DriverObject | None, sight: ClusterSight, *, now: datetime
) -> Duration | None:
    """None: nothing of it moves, nobody sees whether it does, or nobody knows yet which nodes will. One query."""
    if plan.state not in MOVING or on_page.current is None or on_page.pause or on_page.restraint or not sight.is_live:
        return None
    policy = upgrade_policy(driver_object) if driver_object else {}
    back = plan.state == PlanState.ROLLING_BACK
    ahead = [one for one in on_page.stages if one.stage.is_rollback == back and one.stage.state not in OVER]
    took = [
        target.state_since - target.released_at
        for one in on_page.stages
        for target in one.targets
        if target.state == TargetState.CHANGED and target.released_at and target.state_since > target.released_at
    ]
    left = [_left(one, policy, now=now) for one in ahead]
    return duration_of(left, took=took) if any(one.nodes or one.soak for one in left) else None


def holding(on_page: PlanOnPage, *, now: datetime) -> HoldProgress | None:
    """How far it is with holding its nodes. None: it is not at that, or is through."""
    is_at_it = on_page.plan.state in HOLDS_ALL and on_page.plan.put_back_at is None
    return holding_of(on_page.placed, now=now) if is_at_it and not (on_page.pause or on_page.restraint) else None


def expected(plan: Plan, on_page: PlanOnPage, *, now: datetime) -> Duration | None:
    """The same, for who has neither the sight of its cluster nor its driver object. Four queries where it moves."""
    if plan.state not in MOVING:
        return None
    sight = sight_of_cluster(plan.cluster, list(Bookmark.objects.filter(cluster=plan.cluster_id)), now=now)
    driver_object = DriverObject.objects.filter(cluster=plan.cluster_id, uid=plan.object_uid).first()
    return remaining(plan, on_page, driver_object, sight, now=now)


def _left(one: StageOnPage, policy: Mapping[str, Any], *, now: datetime) -> StageTime:
    nodes = sum(target.state in {TargetState.HELD, *IN_FLIGHT} for target in one.targets)
    whole = stage_time(one.stage, nodes, policy)
    is_asked = whole.is_asked and one.stage.state in {StageState.WAITING, StageState.OPENING}
    pool = one.stage.pool
    at_once = min(whole.at_once, pool.max_unavailable) if pool else whole.at_once
    return StageTime(nodes, at_once, _soak_left(one, whole.soak, now=now), is_asked)


def _soak_left(one: StageOnPage, whole: timedelta, *, now: datetime) -> timedelta:
    answer = one.answers.get(Soak.key)
    until = answer.numbers.get("until") if answer and one.stage.state == StageState.SOAKING else None
    return max(timedelta(), datetime.fromisoformat(until) - now) if until else whole
