"""Builds the snapshot on which a plan is decided, outside of any transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from django.db.models import Prefetch

from fleet.models import DriverObject, Node, Pod
from gpu.upgrade_controller import parallel_of, unavailable_of
from operations.failure_domains import UNBOUND, Budgets
from operations.ledger.disruptions import read_budgets
from operations.models import Disruption
from rollouts.components.driver import NO_OBJECT
from rollouts.components.throttle import NO_THROTTLE, UpgradePolicy
from rollouts.engine.cordons import read_cordons
from rollouts.engine.exclusions import read_exclusions
from rollouts.engine.exposure import ClusterClock, read_work
from rollouts.engine.failures import causes_of_failures
from rollouts.engine.gpu_health import read_plan_health
from rollouts.engine.hours import read_hours
from rollouts.engine.live_state import Live, NodesNow
from rollouts.engine.nodes import PlanNodes, from_cluster, from_rows
from rollouts.engine.service_levels import read_service_levels
from rollouts.engine.snapshot import (
    CordonsSnapshot,
    ExclusionsSnapshot,
    NodeSnapshot,
    OrdersSnapshot,
    Snapshot,
    TemplatesSnapshot,
    VersionSnapshot,
)
from rollouts.engine.stage_evidence import StageSurroundings, compares_owners, stage_snapshot
from rollouts.engine.test_jobs import read_test_jobs
from rollouts.engine.workloads import (
    DriverPod,
    driver_pods,
    driver_started_at,
    pods_on,
    ready_and_waiting,
    why_unready,
)
from rollouts.gates.base import Gate, driver_since
from rollouts.gates.exposure import Exposure
from rollouts.gates.headroom import Headroom
from rollouts.gates.window import Window
from rollouts.lifecycle import PlanState, StageState, TargetState
from rollouts.models import GateAnswer, Hold, Plan, PlanEvent, Stage, Verb
from rollouts.queries.affected_nodes import cordons_due
from rollouts.queries.driver_nodes import (
    clock_ahead,
    controller_off,
    is_held_by_others,
    newest_hashes,
    row_age,
    upgrade_policy,
)
from rollouts.queries.operators import operator_down
from rollouts.queries.restraints import GOES_BACK, restraints_of
from rollouts.queries.stage_windows import RELEASED_STATES, released_outside_windows

RELEASING_STATES = (StageState.OPENING, StageState.PROMOTING)


def observe(plan: Plan, live: Live, *, now: datetime, seen: NodesNow | None = None) -> Snapshot:
    """Combines rows and live answers with a fixed number of queries, whatever the plan's size.

    `seen` are the nodes as the API server lists them; None means as in rows.
    """
    answers = Prefetch("answers", GateAnswer.objects.filter(is_current=True).order_by())
    stages = list(plan.stages.prefetch_related("targets", answers, "approvals", "overrides").order_by("index"))
    targets = {target.node_uid: target.node_name for stage in stages for target in stage.targets.all()}
    nodes = from_cluster(plan, live, seen, targets) if seen else from_rows(plan, targets)
    rows, drivers = nodes.selected, nodes.drivers
    policy = read_policy(plan, len(rows))
    restraints = restraints_of(plan, now=now)
    taken = list(Disruption.objects.in_force().filter(cluster=plan.cluster_id).order_by())
    restrained = {uid: one.sentence for uid, one in restraints.of_nodes([row.uid for row in rows]).items()}
    restrained |= _out_by_others(plan, taken)
    there = {row.uid for row in rows}
    openings = restraints.openings_of(_not_begun(stages, there), lasting=_longest_window_time(stages))
    if plan.state == PlanState.PROMOTING:  # rollbacks wait for no window (hazard Z32)
        restrained = released_outside_windows(stages, openings, there, now=now) | restrained
    may_go = {row.uid: row for row in rows if row.uid not in restrained and not row.is_unschedulable}
    budgets = _budgets(plan, stages, [row.name for row in rows])
    going = {stage.pk: _next_wave(stage, may_go, policy, budgets) for stage in stages if _asks(stage, Headroom)}
    looked = row_age(plan, now=now)
    stale, oldest = looked.stale_reason, looked.oldest
    holds = nodes.holds
    busy = _changed_by_other_plans([row.uid for row in rows if row.uid not in holds])
    ahead = clock_ahead(plan.cluster_id)
    by_uid = {row.uid: row for row in rows}
    pods = pods_on(plan, _names_to_evaluate(stages) | {node.name for nodes in going.values() for node in nodes})
    exposed = _exposed(stages)
    surroundings = StageSurroundings(
        by_uid,
        pods,
        *(ready_and_waiting(plan) if compares_owners(stages) else (Counter(), Counter())),
        bool(stale),
        oldest,
        ahead,
        plan.mark,
        restrained,
        openings,
        read_work(
            plan.cluster_id,
            exposed,
            by_uid,
            pods,
            ClusterClock(oldest, ahead),
            _drivers_since(stages, exposed, pods, ahead),
        ),
        why_unready(pods, now=now),
        causes_of_failures(stages, by_uid, now=now),
        read_plan_health(plan, _evaluated(stages), by_uid, now=now),
        read_service_levels(_evaluated(stages)),
        read_hours(plan, _evaluated(stages), by_uid, now=now),
    )
    pauses = list(plan.commands.filter(verb=Verb.PAUSE))
    pause = next((pause for pause in pauses if pause.ended_at is None), None)
    resumed_at = max((pause.ended_at for pause in pauses if pause.ended_at), default=plan.state_since)
    failures = _failures_in_the_rollback(plan, stages, since=resumed_at)
    first = restraints.first
    off = read_exclusions(plan)
    test_jobs = read_test_jobs(plan, stages)
    cordons = read_cordons(plan, test_jobs)
    return Snapshot(
        component=plan.its_component,
        seen_at=oldest,
        stale_reason=stale,
        state=PlanState(plan.state),
        version=_version(plan, live),
        templates=_templates(plan, live, {row.uid: drivers[row.name].owner_uid for row in rows if row.name in drivers}),
        orders=OrdersSnapshot(
            armed_since=max(plan.armed_since, resumed_at) if plan.armed_since else None,
            may_be_armed_for=timedelta(seconds=plan.max_armed_s),
            paused_reason=pause.sentence if pause else "",
            stopped_reason=live.stopped_reason or (first.sentence if first and first.is_stop else ""),
            frozen_reason=first.sentence if first else "",
            restrained=restrained,
        ),
        budgets=budgets,
        disruptions=frozenset(one.node_uid for one in taken if one.taken_by == plan.mark),
        policy=policy,
        nodes=tuple(
            replace(
                _node_snapshot(plan, row, drivers.get(row.name), holds.get(row.uid), live, ahead),
                busy_with=busy.get(row.uid, ""),
            )
            for row in rows
        ),
        unmanaged_nodes=_unmanaged_nodes(plan, nodes, live, ahead),
        gone=nodes.gone,
        exclusions=ExclusionsSnapshot(off.in_force, off.back, off.left),
        cordons=CordonsSnapshot(
            cordons.in_force,
            cordons.left,
            cordons_due(plan),
            frozenset(row.uid for row in rows if cordons.has(row.uid, is_shown=row.is_unschedulable, seen_at=oldest)),
        ),
        test_jobs=test_jobs.in_the_cluster,
        operator_down=operator_down(plan.cluster, now=now),
        is_live=nodes.are_live,
        stages=tuple(
            stage_snapshot(
                plan,
                stage,
                surroundings,
                going=going.get(stage.pk),
                resumed_at=resumed_at,
                failures=failures if stage.is_rollback else {},
                off=off,
                test_jobs=test_jobs,
                cordons=cordons,
                now=now,
            )
            for stage in stages
        ),
    )


def _version(plan: Plan, live: Live) -> VersionSnapshot:
    return VersionSnapshot(
        old=plan.from_version,
        new=plan.to_version,
        current=live.object_version,
        write_intended=plan.write_intended_at is not None,
        object_trouble=live.object_trouble,
        template_change=plan.template_change.get("says", ""),
        handed_to=plan.handed_to,
        handed_by=_handed_by(plan),
    )


def _templates(plan: Plan, live: Live, daemonsets: Mapping[str, str]) -> TemplatesSnapshot:
    sealed = plan.sealed.get("revisions", {})
    return TemplatesSnapshot(
        recorded=plan.templates.get("old", sealed),
        newest=live.hashes,
        unsettled=live.unsettled,
        sealed=sealed,
        daemonsets=daemonsets,
    )


def _handed_by(plan: Plan) -> str:
    """Returns who handed the nodes over, with at most one query."""
    told = (
        plan.commands.filter(verb=Verb.HANDOVER, ended_at=None).values_list("actor", flat=True)
        if plan.handed_to
        else ()
    )
    return next(iter(told), "")


def _evaluated(stages: Sequence[Stage]) -> list[Stage]:
    passed = [stage for stage in stages if stage.state == StageState.PASSED]
    return [stage for stage in stages if stage.state != StageState.PASSED] + passed[-1:]


def _names_to_evaluate(stages: Sequence[Stage]) -> set[str]:
    """Returns the released nodes, since only their pods matter."""
    evaluated = (target for stage in _evaluated(stages) for target in stage.targets.all())
    return {target.node_name for target in evaluated if target.state != TargetState.HELD}


def _exposed(stages: Sequence[Stage]) -> dict[str, datetime]:
    """Returns when each node was seen changed, by node UID, if a gate asks for exposure."""
    asking = (stage for stage in _evaluated(stages) if Exposure.key in stage.gate_options and not stage.is_rollback)
    targets = (target for stage in asking for target in stage.targets.all())
    return {target.node_uid: target.state_since for target in targets if target.state == TargetState.CHANGED}


def _drivers_since(
    stages: Sequence[Stage], uids: Collection[str], pods: Mapping[str, Sequence[Pod]], ahead: timedelta
) -> dict[str, datetime]:
    """Returns since when each of these nodes runs its new driver, by node UID."""
    targets = (target for stage in stages for target in stage.targets.all() if not stage.is_rollback)
    return {
        target.node_uid: driver_since(
            target.state_since,
            driver_started_at(pods.get(target.node_name, ()), ahead),
            datetime.fromisoformat(target.baseline["at"]) if target.baseline else None,
        )
        for target in targets
        if target.node_uid in uids
    }


def read_policy(plan: Plan, nodes: int) -> UpgradePolicy:
    if plan.its_component.room is None:
        return NO_THROTTLE
    row = DriverObject.objects.filter(cluster=plan.cluster_id, uid=plan.object_uid).order_by("pk").first()
    policy = upgrade_policy(row) if row else {}
    return UpgradePolicy(
        off=controller_off(row) if row else NO_OBJECT,
        max_parallel=parallel_of(policy),
        max_unavailable=unavailable_of(policy, nodes),
    )


def _out_by_others(plan: Plan, taken: Iterable[Disruption]) -> dict[str, str]:
    """Returns why nodes that something other than a plan made unavailable are not released, by node UID."""
    return {} if plan.state in GOES_BACK else {one.node_uid: one.not_free for one in taken if not one.binds_rollbacks}


def _changed_by_other_plans(unheld: Sequence[str]) -> dict[str, str]:
    """Returns the other plans that change nodes without our hold, by node UID. At most one query."""
    if not unheld:
        return {}
    others = Hold.objects.in_force().filter(node_uid__in=unheld).select_related("plan")
    return {hold.node_uid: hold.plan.mark for hold in others}


def _node_snapshot(
    plan: Plan, row: Node, driver: DriverPod | None, hold: Hold | None, live: Live, ahead: timedelta
) -> NodeSnapshot:
    component = plan.its_component
    is_kept = hold is not None and hold.is_wanted
    is_in_sync = driver is not None and driver.revision_hash == live.hashes.get(driver.owner_uid)
    return NodeSnapshot(
        uid=row.uid,
        name=row.name,
        has_label=row.is_held if component.hold else is_kept,
        label_is_ours=row.held_by == plan.mark if component.hold else is_kept,
        phase=component.phase(row.upgrade_state, has_pod=driver is not None, is_in_sync=is_in_sync),
        upgrade_state=row.upgrade_state,
        is_ready=row.is_ready,
        is_unschedulable=row.is_unschedulable,
        driver_version="" if row.driver_unknown_since else row.driver_version,
        pod_hash=driver.revision_hash if driver else "",
        hold_wanted=hold.is_wanted if hold else None,
        hold_is_foreign=hold.is_foreign if hold else component.hold is not None and is_held_by_others(row),
        was_held_again=hold is not None and _was_held_again(plan, hold),
        label_was_placed=hold is not None and hold.placed_at is not None,
        label_is_older=hold is not None and hold.is_older and not hold.trouble,
        trouble=hold.trouble if hold else "",
        is_late_node=_is_late_node(plan, row, ahead),
    )


def _unmanaged_nodes(plan: Plan, nodes: PlanNodes, live: Live, ahead: timedelta) -> tuple[NodeSnapshot, ...]:
    """Returns unmanaged nodes with the driver pods on them now. Two queries if there are any."""
    if not nodes.unmanaged_nodes:
        return ()
    drivers = driver_pods(plan)
    newest = newest_hashes(plan.cluster_id, {one.owner_uid for one in drivers.values()} - live.hashes.keys())

    def is_of_another(name: str) -> bool:
        pod = drivers.get(name)
        return pod is not None and pod.revision_hash != newest.get(pod.owner_uid, pod.revision_hash)

    return tuple(
        replace(
            _node_snapshot(plan, row, None, nodes.holds.get(row.uid), live, ahead),
            is_of_another=plan.its_component.hold is not None and is_of_another(row.name),
        )
        for row in nodes.unmanaged_nodes
    )


def _was_held_again(plan: Plan, hold: Hold) -> bool:
    written_at = plan.write_intended_at
    if written_at is None or hold.placed_at is None or not hold.is_wanted:
        return False
    return hold.wanted_since < written_at < hold.placed_at


def _is_late_node(plan: Plan, row: Node, ahead: timedelta) -> bool:
    """Returns whether the node joined after the write. API servers give seconds; the same second counts as later."""
    if plan.write_intended_at is None:
        return False
    return row.created_at >= (plan.write_intended_at + ahead).replace(microsecond=0)


def _failures_in_the_rollback(plan: Plan, stages: Iterable[Stage], *, since: datetime) -> dict[str, int]:
    """Returns how often each node failed in the rollback stage, by node UID. At most one query."""
    if plan.state not in GOES_BACK:
        return {}
    going_back = {target.pk: target.node_uid for each in stages if each.is_rollback for target in each.targets.all()}
    if not going_back:
        return {}
    failed = PlanEvent.objects.filter(plan=plan, what="target", to=TargetState.FAILED, at__gte=since).order_by()
    return dict(Counter(going_back[key] for key in failed.values_list("target", flat=True) if key in going_back))


def _asks(stage: Stage, gate: type[Gate]) -> bool:
    return stage.state in RELEASING_STATES and not stage.is_rollback and gate.key in stage.gate_options


def _not_begun(stages: Iterable[Stage], there: Collection[str]) -> list[str]:
    """Returns the nodes that a gate asks maintenance windows for: not released, or released and not begun."""
    targets = (target for stage in stages if _asks(stage, Window) for target in stage.targets.all())
    return [
        one.node_uid for one in targets if one.state in {TargetState.HELD, *RELEASED_STATES} and one.node_uid in there
    ]


def _longest_window_time(stages: Iterable[Stage]) -> timedelta:
    """Returns how long a maintenance window must stay open, at most."""
    gates = (gate for stage in stages if _asks(stage, Window) for gate in stage.gates)
    asked = (gate.must_last for gate in gates if isinstance(gate, Window))
    return max(asked, default=timedelta(0))


def _budgets(plan: Plan, stages: Sequence[Stage], every: Sequence[str]) -> Budgets:
    """Returns the failure-domain budgets of the next nodes, read only while a stage releases nodes.

    `every` are the names of all nodes of the object, any of which a handover releases.
    """
    if plan.state == PlanState.ABORTING:
        return read_budgets(plan.cluster_id, every, is_rollback=False) if plan.handed_to else UNBOUND
    is_rollback = plan.state in GOES_BACK
    is_releasing = [each for each in stages if each.state in RELEASING_STATES and each.is_rollback == is_rollback]
    held = [target for each in is_releasing for target in each.targets.all() if target.state == TargetState.HELD]
    if not held or plan.state not in (PlanState.PROMOTING, PlanState.ROLLING_BACK):
        return UNBOUND
    return read_budgets(plan.cluster_id, [target.node_name for target in held], is_rollback=is_rollback)


def _next_wave(stage: Stage, may_go: Mapping[str, Node], policy: UpgradePolicy, budgets: Budgets) -> list[Node]:
    """Returns as many nodes as stage, operator and failure domains allow; a wave may be smaller."""
    held = {target.node_name: target.node_uid for target in stage.targets.all() if target.state == TargetState.HELD}
    limits = [policy.max_parallel or stage.max_unavailable, stage.max_unavailable]
    at_once = min([*limits, *([] if policy.max_unavailable is None else [policy.max_unavailable])])
    return [may_go[held[name]] for name in budgets.going([n for n, uid in held.items() if uid in may_go], at_once)]
