from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from fleet.freshness.cluster import load_cluster_freshness
from fleet.freshness.observation_state import ClusterObservation
from fleet.models import DriverObject
from rollouts.commands.duration import Duration, StageTime, at_once_now, duration_of
from rollouts.commands.hold_progress import HoldProgress, holding_of, releasing_of
from rollouts.gates.soak import UNTIL, Soak
from rollouts.gates.test_job import TestJobGate
from rollouts.lifecycle import IN_FLIGHT, PlanState, StageState, TargetState
from rollouts.models import Plan, Stage
from rollouts.node_order.node_selection import AtOnce
from rollouts.queries.change_times import NodeTime, default_time
from rollouts.queries.plan_view import PlanOnPage, StageOnPage

MOVING = frozenset({PlanState.HOLDING, PlanState.PROMOTING, PlanState.ROLLING_BACK})
PUTS_BACK = frozenset({PlanState.ROLLING_BACK, PlanState.ABORTING})


def stage_time(stage: Stage, nodes: int, at_once: int, *, in_waves: int | None = None) -> StageTime:
    soak = next((gate.duration for gate in stage.gates if isinstance(gate, Soak) and not gate.advisory), timedelta())
    is_tested = TestJobGate.key in stage.gate_options
    return StageTime(nodes, at_once, soak, "approval" in stage.gate_options, in_waves, is_tested=is_tested)


def remaining(
    plan: Plan, on_page: PlanOnPage, at_once: Mapping[int, AtOnce], observation: ClusterObservation, *, now: datetime
) -> Duration | None:
    """Returns the remaining duration; None if the plan does not move or its nodes are unknown.

    `at_once` is by stage key.
    """
    if (
        plan.state not in MOVING
        or on_page.current is None
        or on_page.pause
        or on_page.restraint
        or not observation.is_live
    ):
        return None
    ahead = [one for one in on_page.ahead if one.stage.pk in at_once]
    left = [_remaining_stage_time(one, at_once[one.stage.pk].nodes, now=now) for one in ahead]
    return duration_of(left, took=times_so_far(on_page)) if any(one.nodes or one.soak for one in left) else None


def times_so_far(on_page: PlanOnPage) -> list[timedelta]:
    """Returns how long each changed node of the plan took."""
    return [
        target.state_since - target.released_at
        for one in on_page.stages
        for target in one.targets
        if target.state == TargetState.CHANGED and target.released_at and target.state_since > target.released_at
    ]


def holding(on_page: PlanOnPage, *, now: datetime) -> HoldProgress | None:
    """Returns the progress of holding; None if it is not in progress."""
    plan = on_page.plan
    if plan.state == PlanState.HOLDING:
        return None if on_page.pause or on_page.restraint else holding_of(on_page.placed, now=now)
    # Before the old version is restored, if neither a pause nor a freeze blocks the holds.
    holds_first = plan.state in PUTS_BACK and plan.write_intended_at is not None and plan.put_back_at is None
    return holding_of(on_page.placed, now=now) if holds_first else None


def releasing(on_page: PlanOnPage, *, now: datetime) -> HoldProgress | None:
    """Returns the progress of releases outside of waves; None if they are not in progress."""
    return releasing_of(on_page.freed, now=now)


def label_progress(on_page: PlanOnPage, *, now: datetime) -> list[HoldProgress]:
    return [one for one in (holding(on_page, now=now), releasing(on_page, now=now)) if one]


def expected(plan: Plan, on_page: PlanOnPage, *, now: datetime) -> Duration | None:
    """Returns the remaining duration for callers that have read nothing else. Sixteen queries at most."""
    if plan.state not in MOVING:
        return None
    observation = load_cluster_freshness(plan.cluster, now=now).observation
    driver_object = DriverObject.objects.filter(cluster=plan.cluster_id, uid=plan.object_uid).first()
    return remaining(plan, on_page, at_once_now(plan, on_page, driver_object), observation, now=now)


def _remaining_stage_time(one: StageOnPage, at_once: int, *, now: datetime) -> StageTime:
    nodes = sum(target.state in {TargetState.HELD, *IN_FLIGHT} for target in one.targets)
    whole = stage_time(one.stage, nodes, at_once)
    if sealed := one.stage.plan.sealed.get("forecast"):
        whole = replace(whole, a_wave=_forecast_wave(sealed))
    is_asked = whole.is_asked and one.stage.state in {StageState.WAITING, StageState.OPENING}
    return replace(whole, soak=_soak_left(one, whole.soak, now=now), is_asked=is_asked)


def _soak_left(one: StageOnPage, whole: timedelta, *, now: datetime) -> timedelta:
    answer = one.answers.get(Soak.key)
    until = answer.value_of(UNTIL) if answer and one.stage.state == StageState.SOAKING else None
    return max(timedelta(), datetime.fromisoformat(until) - now) if until else whole


def _forecast_wave(sealed: Mapping[str, Any]) -> NodeTime:
    """Returns the time of a wave from the forecast of the plan's start."""
    typical, slow = (timedelta(seconds=sealed[values].get("wave_s") or 0) for values in ("values", "slow"))
    assumed = default_time(sealed["mode"])
    if not typical:
        return assumed
    measured = min((cohort["measured"] for cohort in sealed["cohorts"]), default=0)
    return NodeTime(typical, slow, measured, "forecast of the start" if measured else assumed.source)
