"""Excludes nodes from external controllers only while the operator works on them (Z17, Z18). Pure.

NVSentinel sees a fault where the driver is absent, and an autoscaler sees an empty node. The exclusion ends once a node
is in order, held again or given up: before its stage soaks and before the plan ends.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from rollouts.components.base import Phase
from rollouts.engine.decide.acts import Act, Decision, ExcludeAgain, MovePlan, MoveStage, PutBack
from rollouts.engine.decide.budget import is_back
from rollouts.engine.snapshot import NodeSnapshot, Snapshot, StageSnapshot
from rollouts.gates.base import TargetEvidence
from rollouts.lifecycle import IN_FLIGHT, PlanState, StageState, TargetState
from wording.durations import spell
from wording.lists import names
from wording.numbers import either

SOON = timedelta(seconds=1)
# time for pods to start on a changed node; a longer start is a fault for the controllers
COMES_UP = timedelta(minutes=10)


def with_exclusions(snapshot: Snapshot, decision: Decision, *, now: datetime) -> Decision:
    """Adds the exclusions to undo. No stage soaks and no plan ends before all are read back."""
    if not snapshot.exclusions.in_force:
        return _tells_at_the_end(snapshot, decision)
    acts = _acts(snapshot, now=now)
    soon = min(decision.look_again_in, SOON)
    if kept := _waits(snapshot, decision):
        waits = _sentence(snapshot, decision, kept, acts)
        acts_now = (*decision.acts, *acts)
        return replace(decision, waiting_for=waits, moves=(), acts=acts_now, look_again_in=SOON)
    return replace(decision, acts=(*decision.acts, *acts), look_again_in=soon) if acts else decision


def _acts(snapshot: Snapshot, *, now: datetime) -> tuple[Act, ...]:
    nodes = {node.uid: node for node in snapshot.nodes if node.uid in snapshot.exclusions.in_force}
    targets = _followed(snapshot)
    due, unread = {}, {}
    for uid, one in snapshot.exclusions.in_force.items():
        node = nodes.get(uid)
        if not (one.is_wanted and _stays(snapshot, node, targets.get(uid), now=now)):
            due[uid] = one.name
        elif node is not None and not node.has_label and not one.is_placed:
            unread[uid] = one.name
    return tuple(act for act in (PutBack(due), ExcludeAgain(unread)) if act.nodes)


def _stays(snapshot: Snapshot, node: NodeSnapshot | None, target: TargetEvidence | None, *, now: datetime) -> bool:
    """Returns whether the operator still works on the node, or the node is still coming up."""
    if node is None:
        return _may_come_back(snapshot)
    if target is None:
        return node.phase is Phase.AT_WORK
    if target.state is TargetState.CHANGED:
        return not is_back(target) and now - target.state_since <= COMES_UP
    return target.state in IN_FLIGHT


def _may_come_back(snapshot: Snapshot) -> bool:
    """Returns whether a node without a DaemonSet may be selected again, since the operator recreates the DaemonSets."""
    goes_on = snapshot.state in (PlanState.PROMOTING, PlanState.HALTED)
    return goes_on and not snapshot.templates.has_daemonsets and not snapshot.version.object_trouble


def _followed(snapshot: Snapshot) -> dict[str, TargetEvidence]:
    """Returns the targets of the stages in progress by node UID. An aborted plan has none."""
    followed: Sequence[StageSnapshot] = snapshot.forward
    if snapshot.state is PlanState.ROLLING_BACK:
        followed = (snapshot.rollback_stage,)
    elif snapshot.state is PlanState.ABORTING:
        followed = ()
    return {target.uid: target for stage in followed for target in stage.targets}


def _waits(snapshot: Snapshot, decision: Decision) -> frozenset[str]:
    if decision.ends:
        return frozenset(snapshot.exclusions.in_force)
    soaks = {
        move.stage_index for move in decision.moves if isinstance(move, MoveStage) and move.to is StageState.SOAKING
    }
    uids = {target.uid for stage in snapshot.stages if stage.index in soaks for target in stage.targets}
    return frozenset(uids & snapshot.exclusions.in_force.keys())


def _sentence(snapshot: Snapshot, decision: Decision, kept: frozenset[str], acts: Sequence[Act]) -> str:
    """Returns the sentence about the wait. Nodes that are still coming up are named first."""
    due = {uid for act in acts if isinstance(act, PutBack) for uid in act.nodes}
    off = [snapshot.exclusions.in_force[uid] for uid in sorted(kept - due or kept)]
    who = names(_who(one.controllers for one in off))
    nodes, then = names(sorted(one.name for one in off)), _what_waits(snapshot, decision)
    if kept <= due:
        trouble = next((f" {one.trouble}" for one in off if one.trouble), "")
        return f"{then} once the exclusion of {nodes} from {who} is removed.{trouble}"
    they_are = either(len(off), "it is", "they are")
    return (
        f"{then} once the exclusion of {nodes} from {who} ends: when {they_are} healthy again, in "
        f"{spell(COMES_UP)} at most."
    )


def _who(controllers: Iterable[Iterable[str]]) -> list[str]:
    return sorted({one for those in controllers for one in those})


def _what_waits(snapshot: Snapshot, decision: Decision) -> str:
    if any(isinstance(move, MovePlan) for move in decision.moves):
        return "The plan ends"
    index = next(move.stage_index for move in decision.moves if isinstance(move, MoveStage))
    return next(f"{stage.name} soaks" for stage in snapshot.stages if stage.index == index)


def _tells_at_the_end(snapshot: Snapshot, decision: Decision) -> Decision:
    if not decision.ends or not snapshot.is_live or not (snapshot.exclusions.back or snapshot.exclusions.left):
        return decision
    back = snapshot.exclusions.back
    said = [f"The exclusion of {names(sorted(back))} from {names(_who(back.values()))} is removed."] if back else []
    reason = " ".join([*said, *snapshot.exclusions.left[:3]])
    return decision.ending_with(reason)
