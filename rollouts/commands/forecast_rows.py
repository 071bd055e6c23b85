"""The forecast of a plan beside its outcome, for pages and REST.

A draft's forecast is the present one. A plan keeps the forecast of its start, and its rows show the outcome so far.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from statistics import median
from typing import Any, NamedTuple

from django.db.models import Exists, OuterRef, Q

from fleet.allocation.physical import physical_of
from fleet.models import Node
from gpu.evictions import REPLICAS
from operations.tenants.ended_work import ChangeSpan, ended_work
from rollouts.lifecycle import BEGUN, StageState, TargetState
from rollouts.models import Plan, PlanEvent, StageKind, Target
from rollouts.queries.change_times import cohort_of, times_in
from rollouts.queries.warm_ups import slowest_warm_up
from wording.durations import spell


class RowKind(NamedTuple):
    label: str
    unit: str = ""  # "s", "GPU-hours", or blank for a number
    outcome: str = "not measured"  # shown where there is no outcome
    unknown: str = "unknown"  # shown where there is no forecast


SHORT_OR_UNKNOWN = "under 1 min, or unknown"  # also where the pods are gone
ROWS: Mapping[str, RowKind] = {
    "nodes": RowKind("Nodes changed"),
    "gpus": RowKind("GPUs of these nodes"),
    "pods": RowKind("GPU pods evicted"),
    "services": RowKind("Services with several replicas"),
    "jobs": RowKind("Jobs ended"),
    "gpu_hours": RowKind("GPU-hours lost, at most", "GPU-hours"),
    "warm_up_s": RowKind("Slowest warm-up of GPU pods", "s", outcome=SHORT_OR_UNKNOWN, unknown=SHORT_OR_UNKNOWN),
    "without_room": RowKind("GPU pods without room in first waves"),
    "waves": RowKind("Waves"),
    "node_s": RowKind("Time of a node", "s", "no node changed"),
    "wave_s": RowKind("Time of a wave", "s", "no wave ended"),
    "in_waves_s": RowKind("All waves", "s", "no wave ended"),
    "operator_s": RowKind("Waits for the operator", "s", "part of the time of a node"),
    "soaks_s": RowKind("Soaks", "s"),
    "windows_s": RowKind("Closed maintenance windows", "s"),
    "approvals_s": RowKind("Waits for approvals", "s", unknown="unknown, not in the end"),
    "total_s": RowKind("Start to end", "s"),
}


@dataclass(frozen=True)
class ForecastRow:
    key: str
    forecast: float | None  # None: unknown
    slow: float | None  # with the 90th percentile of nodes; None: it is the same, or unknown
    outcome: float | None  # None: not measured, or no outcome yet

    @property
    def kind(self) -> RowKind:
        return ROWS[self.key]

    @property
    def forecast_text(self) -> str:
        return self.kind.unknown if self.forecast is None else self._text(self.forecast)

    @property
    def slow_text(self) -> str:
        """Returns the slow value; empty if it is the same or unknown."""
        return "" if self.slow is None or self.slow == self.forecast else self._text(self.slow)

    @property
    def outcome_text(self) -> str:
        return self.kind.outcome if self.outcome is None else self._text(self.outcome)

    def _text(self, value: float) -> str:
        return spell(timedelta(seconds=value)) if self.kind.unit == "s" else f"{value:,g}"


@dataclass(frozen=True)
class CohortRow:
    title: str
    nodes: int
    typical_s: float
    slow_s: float
    measured: int  # nodes of past plans; 0: a default
    source: str
    outcome_s: float | None  # median of its changed nodes; None: none changed yet

    @property
    def typical(self) -> timedelta:
        return timedelta(seconds=self.typical_s)

    @property
    def slow(self) -> timedelta:
        return timedelta(seconds=self.slow_s)

    @property
    def outcome(self) -> timedelta | None:
        return None if self.outcome_s is None else timedelta(seconds=self.outcome_s)


@dataclass(frozen=True)
class ForecastOnPage:
    at: datetime  # of the forecast
    is_sealed: bool  # kept from the plan's start on
    mode: str
    ends_at: datetime | None  # None: a maintenance window never opens again
    slow_ends_at: datetime | None
    ended_at: datetime | None  # None: the plan has not ended
    rows: list[ForecastRow]
    cohorts: list[CohortRow]
    headroom: list[str]


@dataclass(frozen=True)
class PlanOutcome:
    values: Mapping[str, float] = field(default_factory=dict)  # by the keys of ROWS
    by_cohort: Mapping[tuple[str, ...], float] = field(default_factory=dict)  # seconds of a node, median
    ended_at: datetime | None = None


def shown_forecast(written: Mapping[str, Any], outcome: PlanOutcome, *, is_sealed: bool) -> ForecastOnPage:
    values, slow = written["values"], written["slow"]
    return ForecastOnPage(
        at=datetime.fromisoformat(written["at"]),
        is_sealed=is_sealed,
        mode=written["mode"],
        ends_at=_instant(written["ends_at"]),
        slow_ends_at=_instant(written["slow_ends_at"]),
        ended_at=outcome.ended_at,
        rows=[ForecastRow(key, values.get(key), slow.get(key), outcome.values.get(key)) for key in ROWS],
        cohorts=[
            CohortRow(
                title=cohort["title"],
                nodes=cohort["nodes"],
                typical_s=cohort["typical_s"],
                slow_s=cohort["slow_s"],
                measured=cohort["measured"],
                source=cohort["source"],
                outcome_s=outcome.by_cohort.get(tuple(cohort["cohort"])),
            )
            for cohort in written["cohorts"]
        ],
        headroom=list(written["headroom"]),
    )


def _instant(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


class _Changed(NamedTuple):
    uid: str
    facts: Mapping[str, str]
    state: str
    released_at: datetime
    state_since: datetime
    wave: int | None
    decided_at: datetime | None
    workloads: Mapping[str, int] | None  # owner → Ready pods when the node's release was decided
    owners_ready: Mapping[str, int] | None  # owner → its Ready pods in the cluster then
    has_begun: bool  # False: it was released, and recalled or still waits

    @property
    def took_s(self) -> float:
        return (self.state_since - self.released_at).total_seconds()


def outcome_of(plan: Plan, *, now: datetime) -> PlanOutcome:
    """Returns the outcome of a started plan so far, without its rollback. Ten queries at most."""
    begins = PlanEvent.objects.filter(target=OuterRef("pk"), what="target", to__in=BEGUN)
    released = Target.objects.forward().filter(stage__plan=plan, released_at__isnull=False).order_by()
    released = released.annotate(has_begun=Q(state__in=BEGUN) | Exists(begins))
    columns = ("node_uid", "facts", "state", "released_at", "state_since", "wave_id", "wave__decided_at",
               "baseline__workloads", "baseline__owners_ready", "has_begun")  # fmt: skip
    targets = [_Changed(*row) for row in released.values_list(*columns)]
    begun = [target for target in targets if target.has_begun]
    changed = [target for target in begun if target.state == TargetState.CHANGED]
    waves = _waves(targets)
    cohorts: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for target in changed:
        cohorts[cohort_of(target.facts)].append(target.took_s)
    nodes = Node.objects.filter(cluster=plan.cluster_id, uid__in=[target.uid for target in changed])
    forward = plan.events.exclude(stage__kind=StageKind.ROLLBACK)
    owners = [target.workloads or {} for target in begun]
    ended_at = plan.state_since if plan.is_final else now
    ended = ended_work(
        plan.cluster_id,
        {
            target.uid: ChangeSpan(
                target.released_at, ended_at if target.state == TargetState.CHANGING else target.state_since
            )
            for target in begun
        },
    )
    known: dict[str, float | None] = {
        "nodes": len(changed),
        "gpus": physical_of(nodes).known if changed else 0,
        "pods": sum(sum(its.values()) for its in owners),
        "services": len(_services(begun)),
        "jobs": ended.jobs,
        "gpu_hours": ended.gpu_hours,
        "warm_up_s": plan.warm_up_s if plan.is_final else slowest_warm_up(plan, by=now),
        "waves": len({target.wave for target in targets if target.wave}),
        "node_s": median(target.took_s for target in changed) if changed else None,
        "wave_s": sum(waves) / len(waves) if waves else None,
        "in_waves_s": sum(waves) if waves else None,
        "soaks_s": _total_seconds(times_in(forward, StageState.SOAKING)),
        "approvals_s": _total_seconds(times_in(forward, StageState.OPENING)),
        "total_s": (ended_at - plan.sealed_at).total_seconds() if plan.sealed_at else None,
    }
    return PlanOutcome(
        values={key: round(value, 1) for key, value in known.items() if value is not None},
        by_cohort={cohort: round(median(times), 1) for cohort, times in cohorts.items()},
        ended_at=plan.state_since if plan.is_final else None,
    )


def _services(targets: Sequence[_Changed]) -> set[str]:
    """Returns the services with several Ready replicas, one of them on a released node, when that was released."""
    ready = (
        (owner, (target.owners_ready or {}).get(owner, 0)) for target in targets for owner in target.workloads or {}
    )
    return {owner for owner, number in ready if number > 1 and owner.partition(" ")[0] in REPLICAS}


def _waves(targets: Sequence[_Changed]) -> list[float]:
    """Returns how long each wave took whose nodes all changed or failed, in seconds."""
    waves: dict[int, list[_Changed]] = defaultdict(list)
    for target in targets:
        if target.wave and target.decided_at:
            waves[target.wave].append(target)
    over = (TargetState.CHANGED, TargetState.FAILED)
    return [
        (max(target.state_since for target in its) - its[0].decided_at).total_seconds()  # type: ignore[operator]
        for its in waves.values()
        if all(target.state in over for target in its)
    ]


def _total_seconds(times: Mapping[int, Sequence[timedelta]]) -> float:
    return sum(time.total_seconds() for its in times.values() for time in its)
