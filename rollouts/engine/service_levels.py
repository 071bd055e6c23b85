"""Measurements for the gate on a service level, asked of the cluster's own Prometheus at most every 30 seconds.

They are rows: a round reads the newest. A source that does not answer costs a round five seconds, twice a minute.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from fleet.models import Node
from health.models import TelemetrySource
from health.sources.service_levels import Measured, NotMeasured, measure_nodes, source_of
from rollouts.engine.gpu_health import COHORT, unchanged_peers
from rollouts.gates.base import FEWEST_PEERS, ServiceEvidence, ServiceLevel
from rollouts.gates.slo import PEERS, SLOS, Slo
from rollouts.lifecycle import StageState, TargetState
from rollouts.models import Plan, ServiceLevelSample, Stage, Target

KEYS = frozenset(gate.key for gate in SLOS)
EVERY = timedelta(seconds=30)
CURRENT = (StageState.PROMOTING, StageState.SOAKING, StageState.HALTED)


def read_service_levels(stages: Iterable[Stage]) -> Mapping[int, Mapping[str, ServiceEvidence]]:
    """Returns by key of a stage and of its gate the newest measurement, and those whose windows do not overlap.

    Two queries; none unless a gate asks.
    """
    asking = [stage.pk for stage in stages if not KEYS.isdisjoint(stage.gate_options)]
    if not asking:
        return {}
    windows = ServiceLevelSample.windows(asking)
    found: dict[int, dict[str, ServiceEvidence]] = defaultdict(dict)
    for (stage, gate), row in ServiceLevelSample.newest(asking).items():
        found[stage][gate] = ServiceEvidence(row.evidence, tuple(windows.get((stage, gate), ())))
    return found


def measure_service_levels(plan: Plan, *, now: datetime) -> bool:
    """Measures what is due and returns whether it asked. One query for a plan without the gate."""
    stages = list(plan.stages.prefetch_related("targets")) if _may_ask(plan) else []
    asking = [(stage, gate) for stage in _evaluated(stages) for gate in stage.gates if isinstance(gate, Slo)]
    last, asked = ServiceLevelSample.newest({stage.pk for stage, _ in asking}), False
    for stage, gate in asking:
        due = [each for each in stage.targets.all() if _is_due(each, gate, now)]
        before = last.get((stage.pk, gate.key))
        if due and (before is None or before.is_older_than(EVERY, now=now)):
            ServiceLevelSample.keep(stage.pk, _measure_level(plan, stages, gate, due, now=now), gate)
            asked = True
    return asked


def _may_ask(plan: Plan) -> bool:
    measured = (*CURRENT, StageState.PASSED)
    return plan.stages.forward().filter(state__in=measured, gate_options__has_any_keys=sorted(KEYS)).exists()


def _evaluated(stages: Sequence[Stage]) -> list[Stage]:
    """Returns the current stage, or the last passed one while the next one waits."""
    forward = [stage for stage in stages if not stage.is_rollback]
    current = [stage for stage in forward if stage.state in CURRENT]
    return current or [stage for stage in forward if stage.state == StageState.PASSED][-1:]


def _is_due(target: Target, gate: Slo, now: datetime) -> bool:
    return target.state == TargetState.CHANGED and gate.has_window(target.state_since, now)


def _measure_level(
    plan: Plan, stages: Sequence[Stage], gate: Slo, due: Sequence[Target], *, now: datetime
) -> ServiceLevel:
    names = tuple(target.node_name for target in due)
    try:
        source = source_of(plan.cluster_id)
        found = _measure(source, gate, names, until=now)
        if not gate.has_baseline:
            return _new_level(now, names, found)
        released_at, peers = _released_at(due), _peers(plan, stages, gate, due)
        base = _measure(source, gate, peers, until=now) if peers else _measure_past(source, gate, names, released_at)
        return _new_level(now, names, found, base, len(peers))
    except NotMeasured as error:
        return ServiceLevel(now, names, trouble=str(error), cause=error.cause)


def _measure_past(source: TelemetrySource, gate: Slo, names: Collection[str], released_at: datetime) -> Measured:
    """Returns the level before the release. One noisy window would bias the comparison with every later one."""
    return _measure(source, gate, names, until=released_at, window=gate.past_window)


def _new_level(
    now: datetime, names: tuple[str, ...], found: Measured, base: Measured | None = None, nodes: int = 0
) -> ServiceLevel:
    return ServiceLevel(
        now, names, found.value, found.samples,
        newest_at=None if found.newest_at is None else datetime.fromtimestamp(found.newest_at, UTC),
        baseline=base.value if base else None,
        baseline_samples=base.samples if base else 0,
        baseline_nodes=nodes,
    )  # fmt: skip


def _released_at(due: Sequence[Target]) -> datetime:
    """Returns the first release of these nodes.

    :raises NotMeasured: when one was not recorded
    """
    released = [datetime.fromisoformat(target.baseline["at"]) for target in due if target.baseline]
    if len(released) < len(due):
        raise NotMeasured("no-baseline", "The release times of these nodes were not recorded.")
    return min(released)


def _peers(plan: Plan, stages: Sequence[Stage], gate: Slo, due: Sequence[Target]) -> list[str]:
    """Returns the unchanged nodes of the baseline; none where only the nodes' own past counts."""
    if gate.baseline != PEERS or len(due) < FEWEST_PEERS:
        return []
    nodes = Node.objects.filter(cluster=plan.cluster_id, uid__in=[target.node_uid for target in due])
    peers = unchanged_peers(plan, stages, nodes.only("uid", *COHORT), _released_at(due)).names
    return list(peers.values()) if len(peers) >= FEWEST_PEERS else []


def _measure(
    source: TelemetrySource, gate: Slo, names: Collection[str], *, until: datetime, window: timedelta | None = None
) -> Measured:
    return measure_nodes(source, gate.definition, names, until=until, window=window or gate.window)
