"""The forecast of a plan: what it disrupts, and how long it takes, from rows of now."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from fleet.allocation.physical import physical_of
from fleet.models import Node, Pod
from operations.failure_domains import DomainKind
from operations.tenants.disruption_cost import total, uncounted
from rollouts.commands.duration import Duration, StageTime, duration_of
from rollouts.commands.timeline import OpenTimes, Timeline, timeline_of
from rollouts.gates.headroom import shortage, without_room
from rollouts.preflight.subject import PreflightSubject
from rollouts.preflight.warm_up import WarmUp, warm_ups
from rollouts.queries.change_times import (
    COMPILED,
    FACTORS,
    PRECOMPILED,
    NodeTime,
    PastRounds,
    cohort_of,
    read_past_rounds,
)
from rollouts.queries.headroom import ClusterRoom, read_room
from wording.numbers import count


@dataclass(frozen=True)
class CohortTime:
    """The expected time of the nodes with the same GPU, kernel and OS image."""

    cohort: tuple[str, ...]  # values of `change_times.FACTORS`
    nodes: int
    time: NodeTime

    @property
    def title(self) -> str:
        return ", ".join(value or f"unknown {name}" for value, name in zip(self.cohort, FACTORS.values(), strict=True))


@dataclass(frozen=True)
class FirstWaveRoom:
    """The room for the GPU pods of each stage's first wave. Later waves meet other nodes and pods."""

    without_room: int  # pods that fit on no other node now
    sentences: list[str]  # a stage each, where not all pods fit or their devices are unknown


@dataclass(frozen=True)
class PlanTimes:
    """The expected times of a plan."""

    mode: str  # compiled or precompiled driver
    cohorts: list[CohortTime]  # the most nodes first
    typical: Timeline  # with the medians of nodes
    slow: Timeline  # with their 90th percentiles
    waves: int


@dataclass(frozen=True)
class Forecast:
    """The disruption by the plan now; values from pods are None where pods were never read."""

    nodes: int
    gpus: int | None  # None: the GPU count of every node is unknown
    uncounted_nodes: int  # nodes with an unknown GPU count
    pods: int | None
    jobs: int | None  # jobs that end completely because of one pod
    gpu_hours: float | None  # of work that is lost at most, every job once, since its pods started. None: all uncounted
    restarts: int | None  # pods of services: no work of theirs is lost
    services: int | None  # with several replicas and a Ready one on these nodes
    uncounted_pods: int | None  # whose GPU-hours are not in it: of slices, shares and claims
    namespaces: list[str] | None
    pods_with_local_files: int | None  # emptyDir: lost where the operator may delete them, in the way where it may not
    unmanaged_pods: int | None
    warm_ups: list[WarmUp] | None  # of workloads that take long until they are Ready again, the longest first
    headroom: FirstWaveRoom | None
    # upper bound, in addition to the nodes' time: the operator reconciles every two minutes
    waits_for_operator: timedelta
    duration: Duration
    times: PlanTimes


def forecast_of(
    subject: PreflightSubject, stages: Sequence[StageTime], waves: Sequence[Sequence[Sequence[str]]], past: PastRounds
) -> Forecast:
    """Returns the forecast. `waves` are the names of nodes by stage and wave. Two queries at most."""
    picks = subject.picks
    nodes, harms = picks.nodes, [picks.harms[node.name] for node in picks.nodes]
    physical = physical_of(nodes)
    pods = [pod for pod in subject.pods if pod.is_tenant]
    by_pods = {
        "pods": len(pods),
        "jobs": len({job.name for harm in harms for job in harm.jobs}),
        "gpu_hours": None if uncounted(harms) and not total(harms) else total(harms),
        "restarts": sum(harm.restarts for harm in harms),
        "services": sum(domain.kind is DomainKind.SERVICE for domain in subject.budgets.of),
        "uncounted_pods": uncounted(harms),
        "namespaces": sorted({pod.namespace for pod in pods}),
        "pods_with_local_files": sum(pod.has_empty_dir for pod in pods),
        "unmanaged_pods": sum(not pod.owner_kind for pod in pods),
        "warm_ups": warm_ups(subject.pods),
        "headroom": _headroom(subject, waves),
    }
    times = _times(subject, stages, past)
    return Forecast(
        nodes=len(nodes),
        gpus=physical.known,
        uncounted_nodes=physical.uncounted,
        **(by_pods if all(harm.is_known for harm in harms) else dict.fromkeys(by_pods)),
        waits_for_operator=times.typical.for_operator,
        duration=duration_of(stages, took=()),
        times=times,
    )


def past_rounds_for(subject: PreflightSubject) -> PastRounds:
    """Returns the times of past plans in the driver mode of this one. Three queries."""
    return read_past_rounds(subject.plan.component, PRECOMPILED if subject.driver.use_precompiled else COMPILED)


def node_times(nodes: Sequence[Node], facts: Mapping[str, Mapping[str, str]], past: PastRounds) -> dict[str, NodeTime]:
    """Returns the expected time of each node by name. `facts` are by UID."""
    known = {cohort: past.time_of(dict(zip(FACTORS, cohort, strict=True))) for cohort in map(cohort_of, facts.values())}
    return {node.name: known[cohort_of(facts[node.uid])] for node in nodes}


def wave_time(waves: Sequence[Sequence[str]], times: Mapping[str, NodeTime]) -> NodeTime | None:
    """Returns the average time of these waves; the slowest node of a wave counts. None if there is no wave."""
    slowest = [max(times[name] for name in wave) for wave in waves if wave]
    if not slowest:
        return None
    return NodeTime(
        typical=sum((time.typical for time in slowest), timedelta()) / len(slowest),
        slow=sum((max(times[name].slow for name in wave) for wave in waves if wave), timedelta()) / len(slowest),
        measured=min(time.measured for time in slowest),
        source="; ".join(dict.fromkeys(time.source for time in slowest)),
    )


def _times(subject: PreflightSubject, stages: Sequence[StageTime], past: PastRounds) -> PlanTimes:
    windows = subject.restraints.windows
    pools = [
        frozenset(pool.pk for node in subject.picks.by_stage.get(stage.index, ()) for pool in node.pools.all())
        for stage in subject.stages
    ]

    def timeline(*, is_slow: bool) -> Timeline:
        opens = [OpenTimes(windows.intervals(its) if windows else None) for its in pools]
        pairs = list(zip(stages, opens, strict=True))
        return timeline_of(pairs, approval_wait=past.approval_wait, now=subject.now, is_slow=is_slow)

    cohorts: dict[tuple[str, ...], int] = defaultdict(int)
    for node in subject.picks.nodes:
        cohorts[cohort_of(subject.picks.candidates[node.uid].facts)] += 1
    found = [
        CohortTime(cohort, nodes, past.time_of(dict(zip(FACTORS, cohort, strict=True))))
        for cohort, nodes in sorted(cohorts.items(), key=lambda item: (-item[1], item[0]))
    ]
    return PlanTimes(
        past.mode, found, timeline(is_slow=False), timeline(is_slow=True), sum(stage.waves for stage in stages)
    )


def _headroom(subject: PreflightSubject, waves: Sequence[Sequence[Sequence[str]]]) -> FirstWaveRoom:
    """Returns the room of each stage's first wave, as the gate of that name counts it. Three queries at most."""
    by_name = {node.name: node for node in subject.picks.nodes}
    pods: dict[str, list[Pod]] = defaultdict(list)
    for pod in subject.pods:
        if pod.is_tenant:
            pods[pod.node_name].append(pod)
    products = {node.gpu_product for name, node in by_name.items() if pods[name]}
    room = read_room(subject.plan.cluster_id, products) if products else ClusterRoom((), {})
    without, sentences = 0, []
    for stage, its in zip(subject.stages, waves, strict=True):
        first = [by_name[name] for name in its[0]] if its else []
        wave = room.next_wave(first, [pod for node in first for pod in pods[node.name]])
        lacking = len(without_room(wave))
        without += lacking
        if lacking:
            sentences.append(f"{stage.name}: {shortage(wave)}.")
        if wave.claiming:
            sentences.append(f"{stage.name}: {count(wave.claiming, 'pod')} with claims, whose room is unknown.")
    return FirstWaveRoom(without, sentences)


def sealed_forecast(forecast: Forecast, *, now: datetime) -> dict[str, Any]:
    """Returns the forecast as a plan keeps it from its start on."""
    times = forecast.times
    return {
        "at": now.isoformat(),
        "mode": times.mode,
        "values": values_of(forecast),
        "slow": slow_values_of(forecast),
        "ends_at": times.typical.ends_at and times.typical.ends_at.isoformat(),
        "slow_ends_at": times.slow.ends_at and times.slow.ends_at.isoformat(),
        "headroom": forecast.headroom.sentences if forecast.headroom else [],
        "cohorts": [
            {
                "cohort": list(cohort.cohort), "title": cohort.title, "nodes": cohort.nodes,
                "typical_s": cohort.time.typical.total_seconds(), "slow_s": cohort.time.slow.total_seconds(),
                "measured": cohort.time.measured, "source": cohort.time.source,
            }
            for cohort in times.cohorts
        ],
    }  # fmt: skip


def values_of(forecast: Forecast) -> dict[str, float | None]:
    """Returns the numbers by the keys of `forecast_rows.ROWS`."""
    return {
        "nodes": forecast.nodes,
        "gpus": forecast.gpus,
        "pods": forecast.pods,
        "services": forecast.services,
        "jobs": forecast.jobs,
        "gpu_hours": None if forecast.gpu_hours is None else round(forecast.gpu_hours, 1),
        "warm_up_s": max((one.took_s for one in forecast.warm_ups or ()), default=None),
        "without_room": forecast.headroom.without_room if forecast.headroom else None,
        **_seconds(forecast.times, forecast.times.typical, is_slow=False),
    }


def slow_values_of(forecast: Forecast) -> dict[str, float | None]:
    return _seconds(forecast.times, forecast.times.slow, is_slow=True)


def _seconds(times: PlanTimes, line: Timeline, *, is_slow: bool) -> dict[str, float | None]:
    nodes = sum(cohort.nodes for cohort in times.cohorts)
    each = [cohort.nodes * (cohort.time.slow if is_slow else cohort.time.typical) for cohort in times.cohorts]
    parts = (line.in_waves, line.for_operator, line.soaks, line.for_windows, line.for_approvals or timedelta())
    known = [part for part in parts if part is not None]
    whole = sum(known, timedelta()) if len(known) == len(parts) else None
    found: dict[str, timedelta | None] = {
        "node_s": sum(each, timedelta()) / nodes if nodes else None,
        "wave_s": line.in_waves / times.waves if times.waves else None,
        "in_waves_s": line.in_waves,
        "operator_s": line.for_operator,
        "soaks_s": line.soaks,
        "windows_s": line.for_windows,
        "approvals_s": line.for_approvals,
        "total_s": whole,
    }
    seconds = {key: None if value is None else round(value.total_seconds(), 1) for key, value in found.items()}
    return {"waves": times.waves, **seconds}
