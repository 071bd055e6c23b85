"""Releases a wave, recalls it, and opens the rollback stage."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial

from django.db import transaction
from django.db.models import Max

from edges.slices import slices
from edges.transition_errors import LostRace
from kube import client
from kube.structs import NodeSeen
from operations.ledger.disruptions import NoPlace, record_disruptions
from operations.node_exclusion import autoscaler_runs
from rollouts.approvals.automatic_approvals import GATE, why_live
from rollouts.engine.act import cordons, exclusions
from rollouts.engine.act.holds import lever_of
from rollouts.engine.act.writer import Writer, combine_writes
from rollouts.engine.baseline import baselines
from rollouts.engine.decide.acts import FinishRelease, OpenRollbackStage, Recall, ReleaseWave
from rollouts.engine.live_state import stopped_in_cluster
from rollouts.gates.test_job import TestJobGate, cordons_by
from rollouts.lifecycle import IN_FLIGHT, PlanState, StageState, TargetState
from rollouts.models import Hold, Plan, Stage, Target, Wave
from rollouts.models.cordon import intend_cordons
from rollouts.models.target import move_targets
from rollouts.models.traffic import DRAIN, UNDRAIN, call_traffic_hook
from rollouts.queries.restraints import restraints_of
from rollouts.queries.stage_windows import why_not_released
from wording.lists import names
from wording.numbers import either

MAY_RELEASE = {False: PlanState.PROMOTING, True: PlanState.ROLLING_BACK}  # by whether the stage is the rollback stage


def release_wave(writer: Writer, act: ReleaseWave) -> str:
    """Releases the wave, and returns which nodes were not released and why; empty means all were."""
    stage = Stage.objects.select_related("plan").get(plan=writer.plan, index=act.stage_index)
    targets = list(stage.targets.filter(node_name__in=act.targets, state=TargetState.HELD).select_related("stage"))
    looked = {target.node_uid: _may_go_live(writer, target) for target in targets}
    seen = {uid: node for uid, node in looked.items() if isinstance(node, NodeSeen)}
    ready = [target for target in targets if target.node_uid in seen]
    kept = {target.node_name: why for target in targets if isinstance(why := looked[target.node_uid], str)}
    if not ready:
        return _kept_nodes_text(stage, kept)
    found = _baselines(writer.plan, stage, [target.node_uid for target in ready], now=writer.clock())
    found |= {target.node_uid: target.baseline for target in ready if target.retried_at and target.baseline}
    has_autoscaler = autoscaler_runs(writer.connection)
    off = {uid: exclusions.wanted_for(node, has_autoscaler=has_autoscaler) for uid, node in seen.items()}
    _intend(writer.plan, stage, ready, found, off=off, reason=act.reason, now=writer.clock())
    _release(writer, stage, ready)
    return _kept_nodes_text(stage, kept)


def _kept_nodes_text(stage: Stage, kept: Mapping[str, str]) -> str:
    """Returns a sentence about the nodes that were not released (name → reason); empty means none."""
    by_reason: dict[str, list[str]] = defaultdict(list)
    for name, why in kept.items():
        by_reason[why].append(name)
    does = [
        f"{names(those)} {either(len(those), 'does', 'do')} not change ({why.rstrip('.')})"
        for why, those in by_reason.items()
    ]
    return f"{stage.name}, as the API server shows it now: {', and '.join(does)}." if does else ""


def finish_release(writer: Writer, act: FinishRelease) -> None:
    stage = Stage.objects.select_related("plan").get(plan=writer.plan, index=act.stage_index)
    _release(writer, stage, list(stage.targets.filter(node_name__in=act.targets, state=TargetState.RELEASING)))


def recall(writer: Writer, act: Recall) -> None:
    """Holds targets again, and gives them their traffic back.

    A node that the operator begins at the same moment continues; a label cannot stop it (Z3).
    """
    stage = Stage.objects.get(plan=writer.plan, index=act.stage_index)
    released = [TargetState.RELEASING, TargetState.RELEASED]
    targets, lever = list(stage.targets.filter(node_name__in=act.targets, state__in=released)), lever_of(writer)
    uids = [target.node_uid for target in targets]
    off = exclusions.rows_of(writer.plan, uids)
    # a node that rolls back stays off until it is back
    cordoned = {} if stage.is_rollback else cordons.rows_of(writer.plan, uids)
    for target in targets:
        if not lever.fence(writer, target.node_uid, target.node_name):
            continue
        now = writer.clock()  # per node: the API server may be slow, and the lease time must move forward
        with transaction.atomic():
            writer.plan.keep_lease(now=now)
            Hold.objects.filter(plan=writer.plan, node_uid=target.node_uid).update(is_wanted=True, wanted_since=now)
            exclusions.unwant(writer.plan, [target.node_uid], now=now)
            reason = writer.component.says.recalled
            target.move(TargetState.HELD, now=now, actor="engine", reason=reason)
            call_traffic_hook(UNDRAIN, writer.plan, [target.node_uid], now=now, actor="engine", reason=reason)
        cordon = cordoned.get(target.node_uid)
        beside = combine_writes(
            exclusions.recall_patch_part(writer, off[target.node_uid]), cordons.recall_patch_part(writer, cordon)
        )
        if seen := lever.call_back(writer, target.node_uid, target.node_name, beside=beside):
            exclusions.settle(writer, seen, off[target.node_uid])
            cordons.settle(writer, seen, cordon)


def open_rollback_stage(writer: Writer, act: OpenRollbackStage) -> None:
    """Creates targets for the nodes that differ from before. Failed nodes come first."""
    now = writer.clock()
    stage = Stage.objects.get(plan=writer.plan, index=writer.plan.stages.aggregate(last=Max("index"))["last"])
    known = {target.node_uid: target for target in Target.objects.filter(stage__plan=writer.plan).forward()}
    failed = {uid for uid, target in known.items() if target.state == TargetState.FAILED}
    start = stage.targets.count()
    found = _baselines(writer.plan, stage, list(act.nodes), now=now)  # some go back by themselves, without a release
    in_order = sorted(act.nodes.items(), key=lambda item: (item[0] not in failed, item[1]))
    for some in slices(enumerate(in_order, start)):  # the next round creates the targets that a crash left out
        rows = some.whole()
        with transaction.atomic():
            writer.plan.keep_lease(now=now)
            Target.objects.bulk_create(
                Target(
                    stage=stage,
                    position=position,
                    node_uid=uid,
                    node_name=name,
                    facts=known[uid].facts if uid in known else {},
                    state=TargetState.HELD,
                    state_since=now,
                    reason="To go back.",
                    baseline=found.get(uid),
                )
                for position, (uid, name) in rows
            )
            uids = [uid for _, (uid, _) in rows]
            Hold.objects.filter(plan=writer.plan, node_uid__in=uids).update(is_wanted=True, wanted_since=now)


def _may_go_live(writer: Writer, target: Target) -> NodeSeen | str:
    """Returns the node as the API server shows it if it may be released, else the reason.

    Rows may be old: the node must still be ours, schedulable, and not begun (Z6, Z25).
    """
    try:
        seen = client.get_node(writer.connection, target.node_name)
    except client.Absent:
        return "gone"
    return _why_kept(writer, target, seen) or seen


def _why_kept(writer: Writer, target: Target, seen: NodeSeen) -> str:
    if seen.uid != target.node_uid:
        return "created again with the same name"
    if not lever_of(writer).may_go(writer, seen):
        return "already begun, or this plan may no longer release it"
    if bound := restraints_of(writer.plan, now=writer.clock()).of_labels(seen.labels):
        return bound.sentence
    if target.stage.is_rollback:
        return ""
    if seen.is_unschedulable and target.retried_at is None:
        return "cordoned by somebody else"
    return "" if _needs_no_approval(writer, target, seen) else "in production, where an approval is required"


def _needs_no_approval(writer: Writer, target: Target, seen: NodeSeen) -> bool:
    """Returns whether the node may be released without an approval, or an approval was asked.

    A label may have put the node into a production pool; rows show that only in a later round.
    """
    is_asked = GATE in target.stage.gate_options
    return is_asked or not why_live(writer.plan.cluster, target.node_uid, seen.labels)


def _baselines(plan: Plan, stage: Stage, node_uids: Sequence[str], *, now: datetime) -> dict[str, dict]:
    """Returns the baseline of each node. The rollback stage uses the state before the plan where it is known."""
    found = baselines(plan, node_uids, now=now)
    if stage.is_rollback:
        forward = Target.objects.filter(stage__plan=plan, baseline__isnull=False).exclude(stage=stage)
        found |= {target.node_uid: target.baseline or {} for target in forward if target.node_uid in found}
    return found


def _to_cordon(stage: Stage, nodes: Mapping[str, str], found: Mapping[str, dict]) -> dict[str, str]:
    """Returns the nodes that stay cordoned until their test Job completes.

    Nodes without a GPU resource, as with DRA, are left out: they would stay cordoned for ever.
    """
    gate = next((gate for gate in stage.gates if isinstance(gate, TestJobGate)), None)
    if gate is None or not cordons_by(stage.gates):
        return {}
    offered = {uid: (found.get(uid) or {}).get("allocatable") or {} for uid in nodes}
    return {uid: name for uid, name in nodes.items() if gate.request_on(offered[uid])[0]}


def _intend(
    plan: Plan,
    stage: Stage,
    targets: Sequence[Target],
    found: dict[str, dict],
    *,
    off: Mapping[str, Mapping[str, str | None]],
    reason: str,
    now: datetime,
) -> None:
    """Records the release. One transaction checks everything that forbids it; later rounds repeat it until done.

    :raises LostRace: when the plan was halted, paused or aborted, the lease has ended, or a budget is used up
    """
    with transaction.atomic():
        plan.keep_lease(now=now)
        _lock_plan_and_stage(plan, stage, targets, now=now)
        under_way = stage.targets.filter(state__in=IN_FLIGHT).count()
        if under_way + len(targets) > stage.max_unavailable:
            raise LostRace(f"{stage.name} has {under_way} nodes on the way and may have {stage.max_unavailable}.")
        number = (stage.waves.aggregate(last=Max("number"))["last"] or 0) + 1
        wave = Wave.objects.create(stage=stage, number=number, decided_at=now, reason=reason[:500])
        for target in targets:
            target.stage = stage
            target.wave, target.baseline = wave, found.get(target.node_uid)
        move_targets(targets, TargetState.RELEASING, now=now, actor="engine", reason=reason)
        Target.objects.bulk_update(targets, ["wave", "baseline"])
        uids = [target.node_uid for target in targets]
        Hold.objects.filter(plan=plan, node_uid__in=uids).update(is_wanted=False, wanted_since=now)
        by_uid = {target.node_uid: target.node_name for target in targets}
        exclusions.intend(plan, by_uid, off, now=now)
        if not stage.is_rollback:
            intend_cordons(plan, _to_cordon(stage, by_uid, found), now=now)
        _take_places(plan, stage, targets, now=now)
        call_traffic_hook(DRAIN, plan, uids, now=now, actor="engine", reason=f"Wave {number} of {stage.name}.")


def _take_places(plan: Plan, stage: Stage, targets: Sequence[Target], *, now: datetime) -> None:
    taking = {target.node_uid: target.node_name for target in targets}
    try:
        record_disruptions(
            plan.cluster_id, taking, by=plan.mark, is_rollback=stage.is_rollback, binds_rollbacks=True, now=now
        )
    except NoPlace as full:
        raise LostRace(str(full)) from full


def _lock_plan_and_stage(plan: Plan, stage: Stage, targets: Sequence[Target], *, now: datetime) -> None:
    """Locks plan and stage by guarded updates: an earlier halt makes them miss, a later halt waits."""
    state = MAY_RELEASE[stage.is_rollback]
    if not Plan.objects.filter(pk=plan.pk, state=state, epoch=plan.epoch).update(state=state):
        raise LostRace("The plan may no longer release nodes.")
    if not Stage.objects.filter(pk=stage.pk, state=StageState.PROMOTING).update(state=StageState.PROMOTING):
        raise LostRace(f"{stage.name} may no longer release nodes.")
    if plan.commands.in_force().exists():
        raise LostRace("The plan is paused.")
    if reason := why_not_released(stage, targets, now=now):
        raise LostRace(reason)


def _release(writer: Writer, stage: Stage, targets: Sequence[Target]) -> None:
    """Releases one node after another, and checks before each whether somebody has stopped the plan."""
    uids = [target.node_uid for target in targets]
    off, cordoned = exclusions.rows_of(writer.plan, uids), cordons.rows_of(writer.plan, uids)
    for target in targets:
        may_go = partial(_is_still_wanted, writer, stage, target)
        rows, cordon = off[target.node_uid], cordoned.get(target.node_uid)
        beside = combine_writes(exclusions.release_patch_part(writer, rows), cordons.release_patch_part(writer, cordon))
        if seen := lever_of(writer).release(writer, target.node_uid, target.node_name, may_go=may_go, beside=beside):
            Target.objects.filter(pk=target.pk).update(released_at=writer.clock())
            exclusions.read_back(writer, seen, rows)
            cordons.read_back(writer, seen, cordon)


def _is_still_wanted(writer: Writer, stage: Stage, target: Target) -> bool:
    """Asks the cluster first, since that takes longest, and then the rows."""
    if stopped_in_cluster(writer.plan, writer.connection):
        return False
    free = Plan.objects.filter(pk=writer.plan.pk, epoch=writer.plan.epoch, state=MAY_RELEASE[stage.is_rollback])
    paused = writer.plan.commands.in_force().exists()
    releasing = Target.objects.filter(pk=target.pk, state=TargetState.RELEASING)
    if paused or not (free.exists() and releasing.exists()):
        return False
    return not why_not_released(stage, [target], now=writer.clock())
