"""The minutes per node that past plans took, by cohort, and defaults where no past plan has enough such nodes.

A node's time begins when its label is seen to be gone, and ends when its new driver is read from it. It includes the
operator's own wait, eviction, driver and operands.

The defaults are ours: 8 minutes for a driver that is compiled on the node, and half of that for a precompiled one. Red
Hat measured that precompiled drivers halve the time until a node has GPUs (redhat.com, How precompiled drivers improve
NVIDIA GPU autoscaling). The slow default is one whole try of the driver's startup probe: 60 s + 120 × 10 s
(gpu-operator, values.yaml).
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise
from statistics import median, quantiles
from typing import NamedTuple

from django.db.models import QuerySet

from rollouts.gates.approval import ApprovalGate
from rollouts.lifecycle import PlanState, StageState, TargetState
from rollouts.models import Plan, PlanEvent, StageKind, Target
from rollouts.models.target import TargetQuerySet
from wording.lists import names
from wording.numbers import count

COMPILED, PRECOMPILED = "compiled", "precompiled"
DEFAULTS: Mapping[str, timedelta] = {COMPILED: timedelta(minutes=8), PRECOMPILED: timedelta(minutes=4)}
DEFAULT_SLOW = timedelta(minutes=21)
FACTORS: Mapping[str, str] = {"gpu_product": "GPU", "kernel": "kernel", "os_image": "OS image"}
LEVELS = (tuple(FACTORS), ("gpu_product", "os_image"), ("gpu_product",), ())  # the narrowest with enough nodes counts
ENOUGH = 3  # measured nodes
PLANS, NODES = 50, 2000  # the newest, at most
ENDED = (PlanState.PROMOTED, PlanState.ROLLED_BACK, PlanState.ABORTED)


class NodeTime(NamedTuple):
    typical: timedelta  # the median
    slow: timedelta  # the 90th percentile
    measured: int  # nodes; 0: a default
    source: str


def default_time(mode: str) -> NodeTime:
    return NodeTime(DEFAULTS[mode], DEFAULT_SLOW, 0, f"default for a {mode} driver")


@dataclass(frozen=True)
class PastRounds:
    mode: str
    by_cohort: Mapping[tuple[str, ...], Sequence[timedelta]] = field(
        default_factory=dict
    )  # values of FACTORS → times of its nodes
    approvals: Sequence[timedelta] = ()  # from the opening of a stage until it was approved

    def time_of(self, facts: Mapping[str, str]) -> NodeTime:
        """Returns the time of a node like this one, from the narrowest group with enough measured nodes."""
        cohort = cohort_of(facts)
        for level in LEVELS:
            places = [place for place, factor in enumerate(FACTORS) if factor in level]
            times = [
                time
                for measured, its in self.by_cohort.items()
                if all(measured[place] == cohort[place] for place in places)
                for time in its
            ]
            if len(times) >= ENOUGH:
                return NodeTime(median_time(times), percentile_90(times), len(times), self._source(len(times), level))
        return default_time(self.mode)

    def _source(self, measured: int, level: Sequence[str]) -> str:
        alike = f"the same {names([FACTORS[factor] for factor in level])}" if level else "any GPU"
        return f"{count(measured, 'node')} of past plans: {self.mode} driver, {alike}"

    @property
    def approval_wait(self) -> timedelta | None:
        """Returns the median wait for an approval; None if no past stage waited for one."""
        return median_time(self.approvals) if self.approvals else None


def median_time(times: Sequence[timedelta]) -> timedelta:
    """Returns the median."""
    return timedelta(seconds=round(median(time.total_seconds() for time in times)))


def percentile_90(times: Sequence[timedelta]) -> timedelta:
    """Returns the 90th percentile."""
    seconds = [time.total_seconds() for time in times]
    found = quantiles(seconds, n=10, method="inclusive")[-1] if len(seconds) > 1 else seconds[0]
    return timedelta(seconds=round(found))


def read_past_rounds(component: str, mode: str) -> PastRounds:
    """Returns the times of the newest ended plans with the same component and driver mode. Three queries."""
    ended = Plan.objects.filter(state__in=ENDED, component=component, sealed__forecast__mode=mode).order_by("-pk")
    plans = list(ended.values_list("pk", flat=True)[:PLANS])
    if not plans:
        return PastRounds(mode)
    return PastRounds(mode, _by_cohort(plans), _approval_waits(plans))


def _by_cohort(plans: Sequence[int]) -> Mapping[tuple[str, ...], Sequence[timedelta]]:
    first_tries = changed_targets(plans).filter(retried_at=None, has_escaped=False).order_by("-pk")
    found: dict[tuple[str, ...], list[timedelta]] = defaultdict(list)
    for facts, began, ended in first_tries.values_list("facts", "released_at", "state_since")[:NODES]:
        if began and ended > began:
            found[cohort_of(facts)].append(ended - began)
    return found


def changed_targets(plans: Sequence[int]) -> TargetQuerySet:
    """Returns the targets that run the new driver since their release."""
    return Target.objects.forward().filter(stage__plan__in=plans, state=TargetState.CHANGED, released_at__isnull=False)


def cohort_of(facts: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(facts.get(name, "") for name in FACTORS)


def _approval_waits(plans: Sequence[int]) -> Sequence[timedelta]:
    asked = PlanEvent.objects.filter(plan__in=plans, stage__gate_options__has_key=ApprovalGate.key)
    waits = times_in(asked.exclude(stage__kind=StageKind.ROLLBACK), StageState.OPENING)
    return [wait for stages in waits.values() for wait in stages]


def times_in(events: QuerySet[PlanEvent], state: StageState) -> Mapping[int, Sequence[timedelta]]:
    """Returns how long each stage was in a state, once per visit, by stage key. One query."""
    moves: dict[int, list] = defaultdict(list)
    rows = events.filter(what="stage", stage__isnull=False).order_by("pk").values_list("stage_id", "to", "at")
    for stage, to, at in rows:
        moves[stage].append((to, at))
    return {
        stage: [after - at for (to, at), (_, after) in pairwise(steps) if to == state] for stage, steps in moves.items()
    }
