"""Moves targets by what the snapshot shows since the last round. Pure."""

from collections.abc import Iterator

from rollouts.components.base import THROUGH, Phase
from rollouts.engine.decide.acts import MoveTarget
from rollouts.engine.decide.node_retries import retry_progress
from rollouts.engine.snapshot import NodeSnapshot, Snapshot, StageSnapshot
from rollouts.gates.base import GAVE_UP, TargetEvidence
from rollouts.gates.workloads_ready import served
from rollouts.lifecycle import TARGET_MOVES, PlanState, TargetState, is_lost


def follow(snapshot: Snapshot, stage: StageSnapshot) -> tuple[MoveTarget, ...]:
    """Returns at most one move per target; the next round finds the following one."""
    return tuple(_moves(snapshot, stage))


def _moves(snapshot: Snapshot, stage: StageSnapshot) -> Iterator[MoveTarget]:
    nodes = snapshot.nodes_by_uid
    gone = snapshot.gone if can_tell_removed_nodes(snapshot) else {}
    is_written = _is_written(snapshot, stage)
    for target in stage.targets:
        if target.uid in gone and (lost := _lost(stage, target, gone[target.uid])):
            yield lost
        node = nodes.get(target.uid)
        if node is None or not target.is_seen:
            continue  # not seen is not changed, and not failed
        if _stays(snapshot, stage, target, node, is_written=is_written):
            continue
        found = _next_state(snapshot, stage, target, node)
        if found is not None and (to := _step_towards(found[0], target.state)):
            escaped = has_escaped(snapshot, stage, target, node)
            yield MoveTarget(stage.index, target.uid, target.name, to, found[1], has_escaped=escaped)


def lost_targets(snapshot: Snapshot) -> tuple[MoveTarget, ...]:
    if snapshot.stale_reason or not snapshot.templates.has_daemonsets:
        return ()
    found = (
        _lost(stage, target, snapshot.gone[target.uid])
        for stage in snapshot.forward
        for target in stage.targets
        if target.uid in snapshot.gone
    )
    return tuple(move for move in found if move)


def can_tell_removed_nodes(snapshot: Snapshot) -> bool:
    """Returns whether absent nodes count as removed: not with old rows, and not while the operator recreates
    DaemonSets."""
    return not snapshot.stale_reason and (snapshot.templates.has_daemonsets or snapshot.state is PlanState.ROLLING_BACK)


def _lost(stage: StageSnapshot, target: TargetEvidence, why: str) -> MoveTarget | None:
    """Takes a target out of its stage. On the way forward a failed target stays failed; in a rollback it is out."""
    if target.state is TargetState.EXCLUDED or (target.state is TargetState.FAILED and not stage.is_rollback):
        return None
    counts = is_lost(target.state, is_retried=target.is_retried, stage=stage.state, is_rollback=stage.is_rollback)
    reason = f"The node {why}."
    return MoveTarget(stage.index, target.uid, target.name, TargetState.EXCLUDED, reason, is_lost=counts)


def _step_towards(to: TargetState, was: TargetState) -> TargetState | None:
    """Returns the next state.

    After an absence of workers the way leads through CHANGING, so that no state is a dead end.
    """
    if to in TARGET_MOVES[was]:
        return to
    if to is was:
        return None
    return TargetState.CHANGING if TargetState.CHANGING in TARGET_MOVES[was] else None


def _stays(
    snapshot: Snapshot, stage: StageSnapshot, target: TargetEvidence, node: NodeSnapshot, *, is_written: bool
) -> bool:
    """Returns whether the target plainly has no next state: most targets of a large plan in most rounds."""
    if target.state is TargetState.HELD:
        waits = not stage.is_rollback and not target.is_retried and not node.has_begun
        return waits and snapshot.templates.has_old_pod(node)
    return target.state is TargetState.CHANGED and is_written and _has_wanted_driver(snapshot, stage, node)


def _next_state(
    snapshot: Snapshot, stage: StageSnapshot, target: TargetEvidence, node: NodeSnapshot
) -> tuple[TargetState, str] | None:
    if target.state is TargetState.EXCLUDED:
        return None
    if has_escaped(snapshot, stage, target, node):
        return TargetState.CHANGING, snapshot.says.has_escaped
    if target.state is TargetState.HELD:
        return _held_target_progress(snapshot, stage, target, node)
    if stage.is_rollback and _waits_again(target, node):
        return TargetState.HELD, "The node is in the operator's queue again and held. It waits for its wave."
    if node.phase is Phase.FAILED:
        return TargetState.FAILED, target.failed_reason or GAVE_UP
    if is_changed(snapshot, stage, node):
        says = snapshot.says.changed
        return (
            None
            if target.state is TargetState.CHANGED
            else (TargetState.CHANGED, says.format(loaded=node.driver_version))
        )
    if node.has_begun:
        return TargetState.CHANGING, snapshot.says.begun.format(state=node.upgrade_state)
    if target.state is TargetState.RELEASING and snapshot.is_released(node):
        return TargetState.RELEASED, snapshot.says.released
    if target.state is TargetState.CHANGED:
        return TargetState.CHANGING, "The node changed again: the operator is changing its driver."
    return None


def _held_target_progress(
    snapshot: Snapshot, stage: StageSnapshot, target: TargetEvidence, node: NodeSnapshot
) -> tuple[TargetState, str] | None:
    if target.is_retried and not stage.is_rollback:
        return retry_progress(snapshot, node, is_changed=is_changed(snapshot, stage, node))
    return _on_its_way_already(snapshot, stage, node)


def _waits_again(target: TargetEvidence, node: NodeSnapshot) -> bool:
    """Returns whether a later template queued the node again after it was held."""
    was_on_its_way = target.state in {TargetState.CHANGING, TargetState.FAILED}
    return was_on_its_way and node.is_held and node.phase is Phase.QUEUED


def _on_its_way_already(snapshot: Snapshot, stage: StageSnapshot, node: NodeSnapshot) -> tuple[TargetState, str] | None:
    """Returns the state of a node that was mid-change when the rollback stage opened; the operator finishes it by
    itself.

    A failed node waits for its wave instead.
    """
    at_work = node.phase is Phase.AT_WORK
    if stage.is_rollback and (at_work or is_changed(snapshot, stage, node)):
        return TargetState.CHANGING, "The node was being changed when the rollback began."
    return None


def is_changed(snapshot: Snapshot, stage: StageSnapshot, node: NodeSnapshot) -> bool:
    """Returns whether the node runs the newest template, the operator has finished, and the node reports the wanted
    version."""
    return _is_written(snapshot, stage) and _has_wanted_driver(snapshot, stage, node)


def _is_written(snapshot: Snapshot, stage: StageSnapshot) -> bool:
    return snapshot.version.current == _wanted_version(snapshot, stage) and not snapshot.templates.unsettled


def _has_wanted_driver(snapshot: Snapshot, stage: StageSnapshot, node: NodeSnapshot) -> bool:
    return node.phase in THROUGH and snapshot.runs(node, _wanted_version(snapshot, stage))


def _wanted_version(snapshot: Snapshot, stage: StageSnapshot) -> str:
    return snapshot.version.old if stage.is_rollback else snapshot.version.new


def has_escaped(snapshot: Snapshot, stage: StageSnapshot, target: TargetEvidence, node: NodeSnapshot) -> bool:
    """Returns whether a held node is in progress or changed: a recreated driver pod takes the new template (Z4)."""
    if stage.is_rollback or target.state is not TargetState.HELD or target.is_retried:
        return False
    if not snapshot.version.write_intended or not node.pod_hash:
        return False
    return node.has_begun or (
        snapshot.version.is_new and not snapshot.templates.has_old_pod(node) and snapshot.templates.is_in_sync(node)
    )


def newly_served(snapshot: Snapshot) -> frozenset[str]:
    """Returns the uids of changed nodes on which a tenant's GPU pod is Ready for the first time since the change."""
    changed = (target for stage in snapshot.forward for target in stage.in_state(TargetState.CHANGED))
    return frozenset(target.uid for target in changed if target.is_seen and not target.has_served and served(target))
