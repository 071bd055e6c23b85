"""Keeps nodes cordoned: until a test Job completes, or after a halt as a person or the plan requests (Z7, Z8). Pure.

The operator keeps the cordon because it is told that the node was cordoned before. The driver manager may uncordon the
node; then it is cordoned again. The cordon ends when the test passes, or when the node is held again, excluded, given
up, or its gate is overridden. A node whose test failed stays cordoned until it is rolled back.

A cordon of a halt is kept while the plan is halted, on failed nodes until the plan ends, and on others until the plan
goes on. A rollback removes it once the node is back.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import timedelta

from operations.test_jobs.test_progress import TestJobOutcome
from rollouts.components.base import Phase
from rollouts.engine.decide.acts import Act, CordonAffected, CordonAgain, Decision, MovePlan, MoveStage, Uncordon
from rollouts.engine.decide.target_progress import can_tell_removed_nodes
from rollouts.engine.snapshot import NodeSnapshot, Snapshot, StageSnapshot
from rollouts.gates.base import TargetEvidence
from rollouts.gates.test_job import TestJobGate
from rollouts.lifecycle import IN_FLIGHT, PlanState, StageState, TargetState
from wording.lists import names
from wording.numbers import are, either, stay

SOON = timedelta(seconds=1)
OVER = (StageState.PASSED, StageState.ABANDONED)


def with_cordons(snapshot: Snapshot, decision: Decision) -> Decision:
    """Adds the uncordons that are due. No stage passes and no plan ends before they are read back."""
    cordons = snapshot.cordons.in_force
    if not cordons:
        return _tells_at_the_end(snapshot, decision, kept=())
    nodes = {node.uid: node for node in snapshot.nodes if node.uid in cordons}
    wanted = _wanted(snapshot, nodes)
    if decision.ends:
        wanted -= {uid for uid, cordon in cordons.items() if cordon.is_of_halt}
    due = {uid: one.name for uid, one in cordons.items() if uid not in wanted}
    again = {uid: cordons[uid].name for uid in sorted(wanted) if _is_away(snapshot, uid, nodes.get(uid))}
    undriven = frozenset(due if snapshot.version.object_trouble else due.keys() - nodes.keys())
    acts: tuple[Act, ...] = tuple(act for act in (Uncordon(due, undriven), CordonAgain(again)) if act.nodes)
    if acts:
        decision = replace(decision, acts=(*decision.acts, *acts), look_again_in=min(decision.look_again_in, SOON))
    if kept := _waits(snapshot, decision, wanted):
        return replace(decision, waiting_for=_sentence(snapshot, decision, kept), moves=(), look_again_in=SOON)
    return _tells_at_the_end(snapshot, decision, kept=tuple(sorted(cordons[uid].name for uid in wanted)))


def with_affected_nodes(snapshot: Snapshot, decision: Decision) -> Decision:
    """Adds the cordons of a halt by a gate. Under a stop the engine writes none of its own accord."""
    due = snapshot.cordons.due
    if not due or snapshot.orders.stopped_reason:
        return decision
    again = min(decision.look_again_in, SOON)
    return replace(decision, acts=(*decision.acts, CordonAffected(due)), look_again_in=again)


def _wanted(snapshot: Snapshot, nodes: Mapping[str, NodeSnapshot]) -> set[str]:
    cordons = snapshot.cordons.in_force
    if snapshot.state is PlanState.ROLLING_BACK:
        targets = {target.uid: target for target in snapshot.rollback_stage.targets}
        found = {uid for uid in cordons if _waits_to_go_back(snapshot, uid, nodes.get(uid), targets.get(uid))}
    else:
        ours = ((stage, one) for stage in snapshot.forward for one in stage.targets if one.uid in cordons)
        found = {target.uid for stage, target in ours if _is_unproven(snapshot, stage, target)}
        if snapshot.version.is_old:  # somebody has taken it back by hand
            found -= {uid for uid, node in nodes.items() if snapshot.is_as_before(node)}
    if not snapshot.version.object_trouble:
        # The operator has cordoned these nodes itself, and checks at its end whether to leave them so.
        found |= {uid for uid, node in nodes.items() if node.phase is Phase.AT_WORK}
    return found - snapshot.gone.keys() if can_tell_removed_nodes(snapshot) else found


def _is_unproven(snapshot: Snapshot, stage: StageSnapshot, target: TargetEvidence) -> bool:
    cordon = snapshot.cordons.in_force[target.uid]
    if cordon.is_of_halt:
        is_kept = snapshot.state is PlanState.HALTED or bool(snapshot.orders.stopped_reason)
        return is_kept or (target.state is TargetState.FAILED and snapshot.state is not PlanState.ABORTING)
    has_failed = cordon.has_failed and not _is_overridden(stage)
    if snapshot.state is PlanState.ABORTING or target.state is TargetState.EXCLUDED:
        return has_failed
    if target.state is TargetState.HELD:
        return target.is_retried
    if target.state is not TargetState.CHANGED:
        return target.state in {*IN_FLIGHT, TargetState.FAILED}
    if snapshot.state is PlanState.HALTED or snapshot.orders.stopped_reason:
        return True  # no node changes in either direction until a person decides
    is_proven = target.test_job is not None and target.test_job.outcome is TestJobOutcome.PASSED
    return not (is_proven or _is_overridden(stage) or stage.state in OVER)


def _is_overridden(stage: StageSnapshot) -> bool:
    return TestJobGate.key in stage.overridden


def _waits_to_go_back(snapshot: Snapshot, uid: str, node: NodeSnapshot | None, target: TargetEvidence | None) -> bool:
    """Returns whether the node has to run the old version again first. Without a rollback target its driver tells."""
    if node is None:
        return True
    if target is None:
        return not snapshot.is_as_before(node)
    is_out = target.state is TargetState.EXCLUDED
    return snapshot.cordons.in_force[uid].has_failed if is_out else target.state is not TargetState.CHANGED


def _is_away(snapshot: Snapshot, uid: str, node: NodeSnapshot | None) -> bool:
    """Returns whether the cordon is absent or not read back. A node under our hold has not been released yet."""
    cordon = snapshot.cordons.in_force[uid]
    if node is None or (node.has_label and not cordon.is_placed and not cordon.is_of_halt):
        return False
    return not (cordon.is_placed and node.is_unschedulable)


def _waits(snapshot: Snapshot, decision: Decision, wanted: Collection[str]) -> frozenset[str]:
    """Returns the nodes that must be uncordoned before the decision is complete."""
    if decision.ends:
        left = (uid for uid, one in snapshot.cordons.in_force.items() if one.has_failed and uid in wanted)
        return frozenset(snapshot.cordons.in_force.keys() - set(left))
    passes = {
        move.stage_index for move in decision.moves if isinstance(move, MoveStage) and move.to is StageState.PASSED
    }
    uids = {target.uid for stage in snapshot.stages if stage.index in passes for target in stage.targets}
    return frozenset(uids & snapshot.cordons.in_force.keys() - set(wanted))


def _sentence(snapshot: Snapshot, decision: Decision, kept: frozenset[str]) -> str:
    waiting = [snapshot.cordons.in_force[uid] for uid in sorted(kept)]
    nodes = names(sorted(one.name for one in waiting))
    trouble = next((f" {one.trouble}" for one in waiting if one.trouble), "")
    return f"{_what_waits(snapshot, decision)} once {nodes} {are(len(waiting))} uncordoned.{trouble}"


def _what_waits(snapshot: Snapshot, decision: Decision) -> str:
    if any(isinstance(move, MovePlan) for move in decision.moves):
        return "The plan ends"
    index = next(move.stage_index for move in decision.moves if isinstance(move, MoveStage))
    return next(f"{stage.name} passes" for stage in snapshot.stages if stage.index == index)


def _tells_at_the_end(snapshot: Snapshot, decision: Decision, *, kept: tuple[str, ...]) -> Decision:
    failed = either(len(kept), "its test Job failed", "their test Jobs failed")
    said = [f"{names(kept)} {stay(len(kept))} cordoned by this plan: {failed}."] if kept else []
    reason = " ".join([*said, *snapshot.cordons.left[:3]])
    if not decision.ends or not reason:
        return decision
    return decision.ending_with(reason)
