"""The expected duration of a plan from its waves, the time per node and its soaks, without people's time. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from fleet.models import DriverObject
from gpu.upgrade_controller import LOOKS_EVERY
from operations.ledger.disruptions import read_budgets
from rollouts.lifecycle import TargetState
from rollouts.models import Plan
from rollouts.node_order.node_selection import AtOnce, at_once
from rollouts.queries.change_times import COMPILED, NodeTime, default_time, percentile_90
from rollouts.queries.driver_nodes import nodes_of, upgrade_policy
from rollouts.queries.plan_view import PlanOnPage, StageOnPage
from rollouts.queries.restraints import GOES_BACK
from wording.durations import spell
from wording.numbers import count

ASSUMED = default_time(COMPILED)


@dataclass(frozen=True)
class StageTime:
    nodes: int  # still to go
    at_once: int  # the smaller of the stage's budget and the operator's slots
    soak: timedelta  # still to come
    is_asked: bool  # its approval is still missing
    in_waves: int | None = None  # with failure domains; None: as many as `at_once` makes
    is_tested: bool = False  # a test Job works on each of its nodes
    a_wave: NodeTime = ASSUMED  # mean over waves of the slowest node

    @property
    def waves(self) -> int:
        return math.ceil(self.nodes / max(1, self.at_once)) if self.in_waves is None else self.in_waves


@dataclass(frozen=True)
class Duration:
    takes: timedelta
    sentence: str

    @property
    def takes_s(self) -> float:
        return self.takes.total_seconds()


def duration_of(stages: Sequence[StageTime], *, took: Sequence[timedelta]) -> Duration:
    """Returns the duration. `took` is the time of each node that this plan has changed."""
    stages = [replace(stage, a_wave=_so_far(took)) for stage in stages] if took else stages
    waves = sum(stage.waves for stage in stages)
    soaks = sum((stage.soak for stage in stages), timedelta())
    in_waves = sum((stage.waves * stage.a_wave.typical for stage in stages), timedelta())
    waits = sum(stage.waves for stage in stages if not stage.a_wave.measured)
    takes = in_waves + waits * LOOKS_EVERY + soaks
    sources = dict.fromkeys(stage.a_wave.source for stage in stages if stage.waves)
    parts = [f"{count(waves, 'wave')} of {spell(in_waves / waves)} ({'; '.join(sources)})"] if waves else []
    parts += [f"up to {spell(LOOKS_EVERY)} until the operator looks"] if waits else []
    parts += [f"{spell(soaks)} of soak" if soaks else "no soak"]
    asked = sum(stage.is_asked for stage in stages)
    is_tested = any(stage.is_tested and stage.nodes for stage in stages)
    left_out = [count(asked, "approval") if asked else "", "test Jobs" if is_tested else ""]
    waited = " and for ".join(part for part in left_out if part)
    people = f" The wait for {waited} is not in it." if waited else ""
    return Duration(takes, f"About {spell(_rounded(takes))}: {', '.join(parts)}.{people}")


def _so_far(took: Sequence[timedelta]) -> NodeTime:
    average = sum(took, timedelta()) / len(took)
    return NodeTime(average, percentile_90(took), len(took), f"as {count(len(took), 'node')} took so far")


def _rounded(takes: timedelta) -> timedelta:
    """Returns the duration rounded to minutes."""
    return timedelta(minutes=max(1, round(takes.total_seconds() / 60)))


def at_once_now(plan: Plan, on_page: PlanOnPage, driver_object: DriverObject | None) -> Mapping[int, AtOnce]:
    """Returns the limits by stage key. Twelve queries at most; none if no node remains."""
    back = plan.state in GOES_BACK
    ahead = [(one.stage, _names(one)) for one in on_page.ahead if one.stage.is_rollback == back]
    asked = [name for _, names in ahead for name in names]
    if driver_object is None or not asked:
        return {}
    budgets = read_budgets(plan.cluster_id, asked, is_rollback=back)
    policy, fleet = upgrade_policy(driver_object), nodes_of(plan).count()
    return {stage.pk: at_once(stage.max_unavailable, names, policy, budgets, fleet=fleet) for stage, names in ahead}


def _names(one: StageOnPage) -> list[str]:
    return [target.node_name for target in one.targets if target.state != TargetState.EXCLUDED]
