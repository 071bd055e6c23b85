"""The number of nodes that may be released now, and the ledger entries that end. Pure.

The number is the smaller of the stage's budget and the free slots of the component's throttle.
"""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from datetime import datetime

from rollouts.components.base import Phase
from rollouts.components.throttle import Room
from rollouts.engine.snapshot import NodeSnapshot, Snapshot, StageSnapshot
from rollouts.gates.base import TargetEvidence
from rollouts.lifecycle import IN_FLIGHT, PlanState, TargetState
from wording.numbers import count

# Forward: released nodes that were not recalled, or that began when they were recalled.
MAY_BEGIN = frozenset({TargetState.RELEASING, TargetState.RELEASED, TargetState.HELD})


def room(snapshot: Snapshot, stage: StageSnapshot) -> Room:
    ours = _stage_room(snapshot, stage)
    throttle = snapshot.component.room
    operators = throttle(snapshot.policy, snapshot.nodes, waiting=_waiting(stage)) if throttle else ours
    return min(ours, operators, key=lambda one: one.nodes)


def room_to_hand_over(snapshot: Snapshot) -> Room:
    going = {node.name for node in snapshot.handover_nodes}
    ours = _room(snapshot, snapshot.rollback_stage.max_unavailable, "the plan", going)
    throttle = snapshot.component.room
    waiting = sum(not node.has_begun for node in snapshot.handover_nodes)
    operators = throttle(snapshot.policy, snapshot.nodes, waiting=waiting) if throttle else ours
    return min(ours, operators, key=lambda one: one.nodes)


def _stage_room(snapshot: Snapshot, stage: StageSnapshot) -> Room:
    """Returns the room in the stage's budget.

    It counts nodes in progress and every broken node, whatever the reason.
    """
    on_the_way = {target.name for target in stage.in_state(*IN_FLIGHT)}
    not_back = {target.name for target in stage.in_state(TargetState.CHANGED) if not is_back(target)}
    failed = {target.name for target in stage.in_state(TargetState.FAILED)}
    return _room(snapshot, stage.max_unavailable, "the stage", on_the_way, not_back, failed)


def _room(
    snapshot: Snapshot,
    most: int,
    whose: str,
    on_the_way: AbstractSet[str],
    not_back: AbstractSet[str] = frozenset(),
    failed: AbstractSet[str] = frozenset(),
) -> Room:
    broken = {node.name for node in snapshot.nodes if node.is_unavailable} | failed
    taken = on_the_way | not_back | broken
    free = max(0, most - len(taken))
    parts = [
        f"{count(len(on_the_way), 'node')} on the way" if on_the_way else "",
        f"{count(len(not_back - on_the_way), 'node')} not yet healthy again" if not_back - on_the_way else "",
        f"{count(len(broken - on_the_way - not_back), 'node')} unavailable" if broken - on_the_way - not_back else "",
    ]
    used = ", ".join(part for part in parts if part) or "none of it used"
    return Room(free, f"{whose} may have {most} unavailable: {used}")


def is_back(target: TargetEvidence) -> bool:
    """Returns whether a changed node works again: Ready, GPU stack up, GPUs allocatable."""
    return target.is_seen and target.is_ready is True and not target.missing_operands_text and not target.offers_fewer


def given_back(snapshot: Snapshot) -> frozenset[str]:
    """Returns the nodes whose ledger entries end: in order again, held before they began, or removed.

    A failed node, or a changed node that is not back, stays unavailable.
    """
    if snapshot.stale_reason:
        return frozenset()
    is_rollback = snapshot.state in (PlanState.ROLLING_BACK, PlanState.ABORTING)
    targets = _targets((snapshot.rollback_stage,) if is_rollback else snapshot.forward)
    if is_rollback:
        targets = {uid: one for uid, one in _targets(snapshot.forward).items() if one.state in MAY_BEGIN} | targets
    nodes = snapshot.nodes_by_uid
    there = {uid: nodes[uid] for uid in snapshot.disruptions if uid in nodes}
    back = {uid for uid, node in there.items() if _is_through(node, targets.get(uid), snapshot.seen_at)}
    # Without a DaemonSet the object selects no node for a moment, and released nodes continue afterwards.
    # these nodes accept no pods yet
    back -= {uid for uid, one in snapshot.cordons.in_force.items() if not one.has_failed}
    back -= {node.uid for node in snapshot.handover_nodes}
    return frozenset(back) | (
        snapshot.disruptions & frozenset(snapshot.gone) if snapshot.templates.has_daemonsets else frozenset()
    )


def _targets(stages: Iterable[StageSnapshot]) -> dict[str, TargetEvidence]:
    return {target.uid: target for stage in stages for target in stage.targets}


def _is_through(node: NodeSnapshot, target: TargetEvidence | None, seen_at: datetime) -> bool:
    if target is not None and target.state is TargetState.EXCLUDED:
        return node.phase is not Phase.AT_WORK
    if node.has_begun:
        return False
    if target is None:
        return True
    if target.state is TargetState.HELD:
        # Held again, but the operator may have begun at that moment: only later observations tell.
        is_over = node.has_label or node.hold_wanted is False  # its release is final, since it never changed
        return is_over and not node.is_unavailable and seen_at > target.state_since
    return target.state is TargetState.CHANGED and is_back(target)


def _waiting(stage: StageSnapshot) -> int:
    """Returns the number of released targets that the operator has not begun; they will use slots that look free."""
    return len(stage.in_state(TargetState.RELEASING, TargetState.RELEASED))
