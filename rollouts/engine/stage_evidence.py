"""The evidence for the gates of one stage, and the snapshot of the stage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from fleet.models import Node, Pod
from people.roster.groups import groups_of
from rollouts.engine.baseline import read_baseline, traits_of
from rollouts.engine.cordons import Cordons
from rollouts.engine.decide.gate_evaluation import LastAnswer, waiting_since
from rollouts.engine.exclusions import PlanExclusions
from rollouts.engine.gpu_health import PlanHealth
from rollouts.engine.snapshot import StageSnapshot
from rollouts.engine.test_jobs import PlanTestJobs
from rollouts.engine.workloads import (
    completed_by_owner,
    driver_started_at,
    operands_of,
    refused,
    validator_of,
    workloads_of,
)
from rollouts.gates.approval import ApprovalGate
from rollouts.gates.base import (
    LEFT_OUT,
    Answer,
    ApprovalEvidence,
    Combination,
    Evidence,
    Gate,
    HoursEvidence,
    NextWave,
    SeenWork,
    ServiceEvidence,
    TargetEvidence,
    When,
    WindowEvidence,
)
from rollouts.gates.compatibility import Compatibility
from rollouts.gates.soak import Soak
from rollouts.lifecycle import IN_FLIGHT, StageState, TargetState
from rollouts.models import Approval, ExternalRolloutNode, Plan, Rollout, Stage, Target
from rollouts.models.gate_answer import KeptAnswer
from rollouts.queries.compatibility import combinations, despite
from rollouts.queries.headroom import read_room
from rollouts.queries.restraints import OpenHours


@dataclass(frozen=True)
class StageSurroundings:
    nodes: Mapping[str, Node]  # by uid
    pods: Mapping[str, list[Pod]]  # by the name of their node
    ready: Counter[str]  # pods, by owner
    waiting: Counter[str]
    is_stale: bool
    seen_at: datetime
    clock_ahead: timedelta
    mark: str  # of the plan, as our labels name it
    restrained: Mapping[str, str]  # UID of a node → restraint in addition to the plan's
    # by UID of a waiting node, if a gate needs it: without an entry no window binds the node
    openings: Mapping[str, OpenHours]
    work: Mapping[str, SeenWork] = field(default_factory=dict)  # by uid of a node that has changed, where a gate asks
    why: Mapping[str, str] = field(default_factory=dict)  # by uid of a tenant's pod that does not run
    failures: Mapping[str, str] = field(default_factory=dict)  # by UID of a failed node: the reason, if no row has one
    health: PlanHealth = field(default_factory=PlanHealth)
    # By stage key, if a gate needs it: the newest measurement, and earlier ones with windows that do not overlap.
    service_levels: Mapping[int, Mapping[str, ServiceEvidence]] = field(default_factory=dict)
    hours: Mapping[int, HoursEvidence] = field(default_factory=dict)  # by key of a stage, where a gate asks


def stage_snapshot(
    plan: Plan,
    stage: Stage,
    around: StageSurroundings,
    *,
    going: Sequence[Node] | None,
    resumed_at: datetime,
    failures: Mapping[str, int],
    off: PlanExclusions,
    test_jobs: PlanTestJobs,
    cordons: Cordons,
    now: datetime,
) -> StageSnapshot:
    targets = list(stage.targets.all())
    gates = tuple(stage.gates)
    said, compared = _load_compatibility(plan, stage, targets, gates, now=now)
    answers = {answer.gate: answer for answer in stage.answers.all()}
    overridden = frozenset(stage.overrides_now(now=now))
    soaked = _soaked_by(gates, overridden)
    before = most_ready(targets)
    evidence = Evidence(
        seen_at=around.seen_at,
        to_version=plan.from_version if stage.is_rollback else plan.to_version,
        targets=tuple(
            replace(
                target_evidence(target, around),
                test_job=test_jobs.of(stage, target, resumed_at=resumed_at),
                is_cordoned_by_us=_is_cordoned_by_us(target, cordons, around),
            )
            if test_jobs.newest or cordons.in_force or cordons.ended_at
            else target_evidence(target, around)
            for target in targets
        ),
        approvals=_approvals(plan, stage, gates),
        workloads_ready_now=ready_now(plan, targets, before, around),
        workloads_waiting_for_room={owner: around.waiting[owner] for owner in before if around.waiting[owner]},
        workloads_ready_before=before,
        workloads_refused=refused_since(plan, targets, before, around),
        next_wave=None if going is None else _next_wave(plan, targets, going, around),
        bound_reason=_bound_reason(targets, around),
        windows=_windows(targets, around),
        combinations=said,
        compared=compared,
        despite=despite(plan),
        others_passing_since=passing_since(soaked, answers, off.last_ended(targets), cordons.last_ended(targets)),
        others_uncounted=_uncounted(gates, soaked),
        exclusions={
            target.node_name: off.in_force[target.node_uid].controllers
            for target in targets
            if target.node_uid in off.in_force
        },
        health=around.health.evidence,
        services=around.service_levels.get(stage.pk, {}),
        hours=around.hours.get(stage.pk),
    )
    return StageSnapshot(
        index=stage.index,
        name=stage.name,
        is_rollback=stage.is_rollback,
        state=StageState(stage.state),
        state_since=max(stage.state_since, resumed_at),  # a resume restarts the wait timeout of each gate
        wait_timeout=timedelta(seconds=stage.timeout_s),
        max_unavailable=stage.max_unavailable,
        gates=gates,
        evidence=evidence,
        failures=failures,
        overridden=overridden,
        waiting_since=waiting_since(
            gates,
            {key: LastAnswer(Answer(row.answer), row.cause, row.since) for key, row in answers.items()},
            StageState(stage.state),
            now=now,
        ),
    )


def _is_cordoned_by_us(target: Target, cordons: Cordons, around: StageSurroundings) -> bool:
    node = around.nodes.get(target.node_uid)
    is_shown = node is not None and node.is_unschedulable
    return cordons.has(target.node_uid, is_shown=is_shown, seen_at=around.seen_at)


def _next_wave(
    plan: Plan, targets: Sequence[Target], going: Sequence[Node], around: StageSurroundings
) -> NextWave | None:
    """Returns the next wave; None if the snapshot is old or no node may be released now."""
    if around.is_stale or (not going and any(target.state == TargetState.HELD for target in targets)):
        return None
    busy = {target.node_name for target in targets if target.state in IN_FLIGHT}
    pods = [pod for node in going for pod in around.pods.get(node.name, ()) if pod.is_tenant and pod.deleted_at is None]
    room = read_room(plan.cluster_id, {node.gpu_product for node in going})
    return room.next_wave(going, pods, busy=busy)


def _bound_reason(targets: Sequence[Target], around: StageSurroundings) -> str:
    """Returns the restraint of most nodes, if all remaining nodes are restrained; empty otherwise."""
    held = [target.node_uid for target in targets if target.state == TargetState.HELD]
    said = Counter(around.restrained[uid] for uid in held if uid in around.restrained)
    return said.most_common(1)[0][0] if held and said.total() == len(held) else ""


def _windows(targets: Sequence[Target], around: StageSurroundings) -> tuple[WindowEvidence, ...] | None:
    """Returns maintenance windows, with nodes of the same windows grouped; None if the snapshot is old or shows no
    node."""
    held = [target for target in targets if target.state == TargetState.HELD]
    seen = [target for target in held if target.node_uid in around.nodes]
    if around.is_stale or (held and not seen):
        return None
    by_openings: dict[OpenHours | None, list[str]] = {}
    for target in seen:
        by_openings.setdefault(around.openings.get(target.node_uid), []).append(target.node_name)
    return tuple(
        WindowEvidence(tuple(names), its.sentence, its.intervals) if its else WindowEvidence(tuple(names))
        for its, names in by_openings.items()
    )


def _load_compatibility(
    plan: Plan, stage: Stage, targets: Sequence[Target], gates: Sequence[Gate], *, now: datetime
) -> tuple[tuple[Combination, ...], int]:
    """Returns the compatibility of the opening stage's nodes. At most five queries per round.

    A node that failed in a stage that is approved again is left out.
    """
    if stage.state != StageState.OPENING or not any(isinstance(gate, Compatibility) for gate in gates):
        return (), 0
    uids = [target.node_uid for target in targets if target.state not in LEFT_OUT]
    return combinations(plan, uids, today=now.date())


def _soaked_by(gates: Iterable[Gate], overridden: frozenset[str]) -> list[str]:
    """Returns the gates that the soak's clock depends on: neither advisory nor overridden."""
    counted = (gate for gate in gates if gate.when is When.THROUGH and not gate.advisory)
    return [gate.key for gate in counted if gate.key != Soak.key and gate.key not in overridden]


def _uncounted(gates: Iterable[Gate], soaked: Sequence[str]) -> tuple[str, ...]:
    others = (gate for gate in gates if gate.when is When.THROUGH and gate.key != Soak.key)
    return tuple(gate.title for gate in others if gate.key not in soaked)


def compares_owners(stages: Iterable[Stage]) -> bool:
    """Returns whether a released node had tenants' pods; otherwise their owners are not read."""
    return any(most_ready(stage.targets.all()) for stage in stages)


def most_ready(targets: Iterable[Target | ExternalRolloutNode]) -> dict[str, int]:
    """Returns the highest number of Ready pods that each owner had when one of its nodes was released."""
    most: dict[str, int] = {}
    for target in targets:
        for owner, ready in ((target.baseline or {}).get("owners_ready") or {}).items():
            most[owner] = max(most.get(owner, 0), ready)
    return most


def ready_now(
    plan: Rollout, targets: Iterable[Target | ExternalRolloutNode], before: Mapping[str, int], around: StageSurroundings
) -> dict[str, int]:
    """Returns the Ready pods of each owner, with those that completed since they were counted.

    One query if an owner has fewer pods than before: the pod of a Job that ran to its end comes back no more.
    """
    now = {owner: around.ready[owner] for owner in before}
    lacking = _lacking(before, around)
    if not lacking:
        return now
    released, counted_at = dict[str, datetime](), dict[str, datetime]()
    for target in targets:
        if base := target.baseline:
            at = released[target.node_uid] = datetime.fromisoformat(base["at"])
            for owner, ready in (base.get("owners_ready") or {}).items():
                if owner in lacking and ready == before[owner]:
                    counted_at[owner] = max(at, counted_at.get(owner, at))
    completed = completed_by_owner(plan, counted_at, released)
    return {owner: ready + completed[owner] for owner, ready in now.items()}


def _lacking(before: Mapping[str, int], around: StageSurroundings) -> set[str]:
    return {owner for owner, ready in before.items() if around.ready[owner] + around.waiting[owner] < ready}


def refused_since(
    plan: Rollout, targets: Iterable[Target | ExternalRolloutNode], before: Mapping[str, int], around: StageSurroundings
) -> Mapping[str, str]:
    """Returns why pods of owners were rejected since the release, for owners with fewer pods than before."""
    lacking = _lacking(before, around)
    since: dict[str, datetime] = {}
    for target in targets:
        base = target.baseline or {}
        for owner in lacking & set(base.get("owners_ready") or {}):
            released = datetime.fromisoformat(base["at"]) + around.clock_ahead
            since[owner] = max(released, since.get(owner, released))
    return refused(plan, since) if since else {}


def passing_since(
    keys: Sequence[str], current: Mapping[str, KeptAnswer], *open_since: datetime | None
) -> datetime | None:
    """Returns since when all gates pass and no exclusion or cordon is in force (`open_since`)."""
    if not keys or any(key not in current or current[key].answer != Answer.PASS for key in keys):
        return None
    return max([*(current[key].since for key in keys), *filter(None, open_since)])


def _approvals(plan: Plan, stage: Stage, gates: Iterable[Gate]) -> tuple[ApprovalEvidence, ...]:
    """Returns the valid approvals. Two queries for an opening stage that asks for groups."""
    standing = [row for row in stage.approvals.all() if row.is_standing]
    asked = next((gate.groups for gate in gates if isinstance(gate, ApprovalGate)), {})
    among = asked if stage.state == StageState.OPENING else ()
    inside = groups_of([row.by for row in standing], among=among)
    return tuple(_approval(plan, row, inside[row.by]) for row in standing)


def _approval(plan: Plan, row: Approval, groups: tuple[str, ...]) -> ApprovalEvidence:
    is_known = bool(plan.author and plan.last_editor)
    return ApprovalEvidence(
        by=row.by,
        at=row.at,
        is_rejection=row.is_rejection,
        reason=row.reason,
        is_by_author=not (row.by and is_known) or row.by in plan.proposers,
        groups=groups,
    )


def target_evidence(target: Target | ExternalRolloutNode, around: StageSurroundings) -> TargetEvidence:
    node = around.nodes.get(target.node_uid)
    written = TargetEvidence(
        uid=target.node_uid,
        name=target.node_name,
        state=TargetState(target.state),
        state_since=target.state_since,
        baseline=read_baseline(target.baseline),
        is_seen=False,
        is_lost=target.is_lost,
        is_retried=target.retried_at is not None,
        failed_reason=_failed_reason(target, around),
        has_served=target.tenants_ready_at is not None and target.tenants_ready_at >= target.state_since,
        facts=target.facts,
    )
    if node is None:
        return written
    pods = around.pods.get(node.name, [])
    return replace(
        written,
        is_seen=not around.is_stale,
        driver_version="" if node.driver_unknown_since else node.driver_version,
        upgrade_state=node.upgrade_state,
        is_ready=node.is_ready,
        allocatable=node.allocatable,
        operands=operands_of(pods),
        workloads=workloads_of(pods, around.clock_ahead, around.why),
        validator=validator_of(pods, around.clock_ahead),
        driver_started_at=driver_started_at(pods, around.clock_ahead),
        mig_config_state=node.mig_config_state,
        is_unschedulable=node.is_unschedulable,
        is_held_by_others=node.is_held and node.held_by != around.mark,
        traits=traits_of(node),
        facts=target.facts or traits_of(node),
        work=around.work.get(node.uid),
        findings=around.health.findings.get(node.uid, ()),
        telemetry=around.health.telemetry.get(node.uid),
    )


def _failed_reason(target: Target | ExternalRolloutNode, around: StageSurroundings) -> str:
    found = around.failures.get(target.node_uid, "")
    if found or isinstance(target, ExternalRolloutNode):
        return found
    return target.reason if target.state == TargetState.FAILED or target.is_lost else ""
