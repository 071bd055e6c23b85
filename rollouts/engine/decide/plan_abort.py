"""Aborts a plan: restores the old version, releases unchanged nodes, and keeps changed nodes held. Pure.

If somebody else has changed the object since the first hold, nothing is released to that change (`handover`).
"""

from datetime import datetime, timedelta

from rollouts.components.base import Phase
from rollouts.engine.decide.acts import AS_BEFORE, Decision, LiftHolds, MovePlan, ReleaseUnmanagedNodes
from rollouts.engine.decide.handover import ask_to_hand_over, free_unchanged, hand_over
from rollouts.engine.decide.releases import SOON, recall
from rollouts.engine.decide.restoration import (
    in_the_operators_hands,
    is_at_work,
    is_ours,
    may_have_our_hold,
    nobody_changed,
    ours,
    restore,
    unmarked,
)
from rollouts.engine.decide.target_progress import lost_targets
from rollouts.engine.decide.unmanaged_nodes import release_unmanaged_nodes
from rollouts.engine.snapshot import NodeSnapshot, Snapshot
from rollouts.lifecycle import BEGUN, PlanState
from wording.lists import names
from wording.numbers import are, count, stay


def abort(snapshot: Snapshot, *, now: datetime) -> Decision:  # noqa: ARG001
    """Aborts the plan: unchanged nodes are as before, changed nodes stay changed and held."""
    if snapshot.version.object_trouble:
        return _free_all(snapshot)
    if recalls := recall(snapshot):
        return Decision(snapshot.says.recalling, acts=recalls, look_again_in=SOON)
    if snapshot.version.is_handed_over:
        return (
            hand_over(snapshot)
            or release_unmanaged_nodes(snapshot)
            or _end(snapshot, _how_it_was_handed_over(snapshot))
        )
    if snapshot.version.is_of_others:
        asks = ask_to_hand_over(snapshot) or release_unmanaged_nodes(snapshot)
        return asks or _end(snapshot, f"Given up. {_what_others_did(snapshot)} {_who_is_held(snapshot)}")
    return _as_before(snapshot)


def _as_before(snapshot: Snapshot) -> Decision:
    """Releases nodes that never changed, if nobody else has changed the object."""
    freeing = restore(snapshot) if snapshot.version.write_intended else _free_before_the_write(snapshot)
    if freeing:
        return freeing
    if gone := lost_targets(snapshot):
        return Decision(AS_BEFORE, moves=gone, look_again_in=timedelta(0))
    if freeing := release_unmanaged_nodes(snapshot):
        return freeing
    if asks := ask_to_hand_over(snapshot):
        return asks
    if waiting := in_the_operators_hands(snapshot) or _still_changing(snapshot):
        return waiting
    left = tuple(
        node for node in snapshot.nodes if snapshot.version.write_intended and not _is_left_alone(snapshot, node)
    )
    return _end(snapshot, _what_is_left(snapshot, left) if left else f"Given up. {nobody_changed(snapshot)}.")


def _is_left_alone(snapshot: Snapshot, node: NodeSnapshot) -> bool:
    return snapshot.is_as_before(node) or snapshot.never_changed(node)


def _free_before_the_write(snapshot: Snapshot) -> Decision | None:
    if ours(snapshot) and snapshot.templates.unsettled:
        return Decision(
            f"The controller has not seen the latest {snapshot.templates.unsettled[0]} yet.", look_again_in=SOON
        )
    if freeing := free_unchanged(snapshot):
        return freeing
    # In the middle of an earlier change, which our label has not stopped, and does not begin again.
    begun = ours(snapshot, lambda node: node.has_begun)
    return (
        Decision(f"Releasing {count(len(begun), 'node')}.", (LiftHolds(begun),), look_again_in=SOON) if begun else None
    )


def _what_others_did(snapshot: Snapshot) -> str:
    return f"{snapshot.version.template_change or snapshot.version.by_others}."


def _how_it_was_handed_over(snapshot: Snapshot) -> str:
    version = snapshot.version
    decided = f"{version.handed_by} released the nodes to {version.handed_to}, which somebody else had requested"
    failed = tuple(node.name for node in snapshot.nodes if node.phase is Phase.FAILED and is_ours(node))
    but = f"; the operator gave up on {names(failed)}" if failed else ""
    return f"Given up. {decided}{but}."


def _free_all(snapshot: Snapshot) -> Decision:
    """Releases all nodes. Nothing drives their upgrades now, so nothing waits for the operator."""
    marked = [
        node
        for node in (*snapshot.nodes, *snapshot.unmanaged_nodes)
        if not node.hold_is_foreign and may_have_our_hold(node)
    ]
    if nodes := {node.uid: node.name for node in marked if not node.is_of_another}:
        sentence = f"Releasing {count(len(nodes), 'node')}: {snapshot.version.object_trouble}"
        return Decision(sentence, acts=(ReleaseUnmanagedNodes(nodes),), look_again_in=SOON)
    begun = tuple(target.name for stage in snapshot.forward for target in stage.in_state(*BEGUN))
    changed = f"{names(begun)} had begun to change." if begun else "No node had begun to change."
    pods = "Its driver pods were deleted with it. The plan no longer controls which driver the nodes load."
    holds = snapshot.says.ours_gone if unmarked(snapshot) else snapshot.says.all_gone
    if of_another := tuple(node.name for node in marked):
        holds = f"{names(of_another)} {stay(len(of_another))} held: another driver object would change them at once."
    parts = ("Given up.", snapshot.version.object_trouble, holds, changed, pods)
    return _end(snapshot, " ".join(part for part in parts if part))


def _end(snapshot: Snapshot, reason: str) -> Decision:
    if says := unmarked(snapshot):
        reason = f"{reason} {says}."
    return Decision(reason, moves=(MovePlan(PlanState.ABORTED, reason),))


def _who_is_held(snapshot: Snapshot) -> str:
    ours = [node for node in snapshot.nodes if is_ours(node)]
    free = tuple(node.name for node in ours if not node.has_label)
    held = f"{count(len(ours) - len(free), 'node')} {stay(len(ours) - len(free))} held"
    return f"{held}; {names(free)} {are(len(free))} not held, and the operator continues there." if free else f"{held}."


def _still_changing(snapshot: Snapshot) -> Decision | None:
    """Waits for nodes that the operator is changing; None if there are none. The outcome shows afterwards."""
    busy = tuple(
        node.name for node in snapshot.nodes if snapshot.version.write_intended and is_at_work(node) and is_ours(node)
    )
    if not busy:
        return None
    return Decision(f"Waiting until the operator finishes {names(busy)}.", look_again_in=SOON)


def _what_is_left(snapshot: Snapshot, left: tuple[NodeSnapshot, ...]) -> str:
    off = snapshot.policy.off
    helps = snapshot.says.helps.format(version=snapshot.version.old)
    helps = f"{off.reason}. {off.fix}, {helps[:1].lower()}{helps[1:]}" if off else helps
    held = tuple(node.name for node in left if node.has_label)
    free = tuple(node.name for node in left if not node.has_label)
    parts = (
        f"{snapshot.says.given_up.format(names=names(held), stay=stay(len(held)))} {helps}" if held else "",
        f"{names(free)} {are(len(free))} neither restored nor held: the operator continues there." if free else "",
    )
    return " ".join(("Given up.", *(part for part in parts if part)))
