"""Giving a plan up: the old version is put back, what never changed is let go, what changed stays, held. Pure."""

from datetime import datetime, timedelta

from rollouts.engine.decide.acts import AS_BEFORE, Decision, FreeStrays, LiftHolds, MovePlan
from rollouts.engine.decide.following import lost
from rollouts.engine.decide.releasing import SOON, recall
from rollouts.engine.decide.restoring import (
    in_the_operators_hands,
    is_at_work,
    is_ours,
    may_be_held,
    nobody_changed,
    ours,
    restore,
    unmarked,
)
from rollouts.engine.decide.strays import free_strays
from rollouts.engine.snapshot import NodeSnapshot, Snapshot
from rollouts.lifecycle import BEGUN, PlanState
from wording.lists import names
from wording.numbers import are, count, stay


def abort(snapshot: Snapshot, *, now: datetime) -> Decision:  # noqa: ARG001
    """Give the plan up: what never changed is as before, what changed stays as it is, and held."""
    if snapshot.object_trouble:
        return _free_all(snapshot)
    if let_go := recall(snapshot):
        return Decision(snapshot.says.recalling, acts=let_go, look_again_in=SOON)
    if snapshot.write_intended and not (snapshot.has_old_version or snapshot.has_new_version):
        return free_strays(snapshot) or _end(snapshot, f"Given up. {snapshot.by_others}. {_who_is_held(snapshot)}")
    if snapshot.write_intended and (restoring := restore(snapshot)):
        return restoring
    if not snapshot.write_intended and (held := ours(snapshot)):
        return Decision(f"Letting {count(len(held), 'node')} go.", acts=(LiftHolds(held),), look_again_in=SOON)
    if gone := lost(snapshot):
        return Decision(AS_BEFORE, moves=gone, look_again_in=timedelta(0))
    if freeing := free_strays(snapshot):
        return freeing
    if freeing := _free_what_never_changed(snapshot):
        return freeing
    if waiting := in_the_operators_hands(snapshot) or _still_changing(snapshot):
        return waiting
    left = tuple(node for node in snapshot.nodes if snapshot.write_intended and not _is_left_alone(snapshot, node))
    return _end(snapshot, _what_is_left(snapshot, left) if left else f"Given up. {nobody_changed(snapshot)}.")


def _is_left_alone(snapshot: Snapshot, node: NodeSnapshot) -> bool:
    return snapshot.is_as_before(node) or snapshot.never_changed(node)


def _free_what_never_changed(snapshot: Snapshot) -> Decision | None:
    """Where somebody else changed the template and a person took it as it is: the operator brings it to them.

    It has them in its queue already, and would put them there again before we had taken the label off.
    """
    free = ours(snapshot, lambda node: snapshot.never_changed(node) and not snapshot.is_in_sync(node))
    if not free:
        return None
    if waits := snapshot.stopped_because or snapshot.frozen_because:
        return Decision(waits)
    bound = [snapshot.restrained[uid] for uid in free if uid in snapshot.restrained]
    if len(bound) == len(free):
        return Decision(
            f"{count(len(free), 'node')} that never changed {are(len(free))} still to be let go. {bound[0]}"
        )
    free = {uid: name for uid, name in free.items() if uid not in snapshot.restrained}
    sentence = f"Letting {count(len(free), 'node')} go that never changed: the operator brings the template to them."
    return Decision(sentence, acts=(LiftHolds(free, even_queued=True),), look_again_in=SOON)


def _free_all(snapshot: Snapshot) -> Decision:
    """Nobody drives these nodes any more, so nothing has to wait for the operator."""
    marked = (node for node in (*snapshot.nodes, *snapshot.strays) if not node.hold_is_foreign and may_be_held(node))
    if nodes := {node.uid: node.name for node in marked}:
        sentence = f"Letting {count(len(nodes), 'node')} go: {snapshot.object_trouble}"
        return Decision(sentence, acts=(FreeStrays(nodes),), look_again_in=SOON)
    begun = tuple(target.name for stage in snapshot.forward for target in stage.in_state(*BEGUN))
    changed = f"{names(begun)} had begun to change." if begun else "No node had begun to change."
    pods = "Its driver pods went with it: which driver its nodes load now is no longer this plan's to say."
    holds = snapshot.says.ours_gone if unmarked(snapshot) else snapshot.says.all_gone
    parts = ("Given up.", snapshot.object_trouble, holds, changed, pods)
    return _end(snapshot, " ".join(part for part in parts if part))


def _end(snapshot: Snapshot, because: str) -> Decision:
    if says := unmarked(snapshot):
        because = f"{because} {says}."
    return Decision(because, moves=(MovePlan(PlanState.ABORTED, because),))


def _who_is_held(snapshot: Snapshot) -> str:
    """Of the nodes that the plan held: which of them are, and which are not."""
    ours = [node for node in snapshot.nodes if is_ours(node)]
    free = tuple(node.name for node in ours if not node.has_label)
    held = f"{count(len(ours) - len(free), 'node')} {stay(len(ours) - len(free))} held"
    return f"{held}; {names(free)} {are(len(free))} not, and the operator goes on there." if free else f"{held}."


def _still_changing(snapshot: Snapshot) -> Decision | None:
    """Nodes that the operator takes to the new driver, or back again: which of the two shows when it is through."""
    busy = tuple(node.name for node in snapshot.nodes if snapshot.write_intended and is_at_work(node) and is_ours(node))
    if not busy:
        return None
    return Decision(f"Waiting until the operator is through with {names(busy)}.", look_again_in=SOON)


def _what_is_left(snapshot: Snapshot, left: tuple[NodeSnapshot, ...]) -> str:
    off = snapshot.policy.off
    helps = snapshot.says.helps.format(version=snapshot.from_version)
    helps = f"{off.because}. {off.fix}, {helps[:1].lower()}{helps[1:]}" if off else helps
    held = tuple(node.name for node in left if node.has_label)
    free = tuple(node.name for node in left if not node.has_label)
    cordoned = tuple(node.name for node in left if node.has_label and node.is_unschedulable)
    parts = (
        f"{snapshot.says.given_up.format(names=names(held), stay=stay(len(held)))} {helps}" if held else "",
        f"{names(cordoned)} {are(len(cordoned))} cordoned." if cordoned else "",
        f"{names(free)} {are(len(free))} not as before and not held: the operator goes on there." if free else "",
    )
    return " ".join(("Given up.", *(part for part in parts if part)))
