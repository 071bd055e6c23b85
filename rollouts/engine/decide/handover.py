"""Hands over the nodes of an aborted plan whose object somebody else has changed. Pure.

The nodes stay held until a person decides. Then they are released in waves, within the plan's budget and the operator's
slots, and never under a stop, a freeze or a closed window (Z38).
"""

from collections.abc import Iterable
from datetime import timedelta

from gpu.labels import UPGRADE_STATE
from gpu.upgrade_controller import UPGRADE_REQUIRED
from rollouts.components.base import BEGUN, THROUGH, Phase
from rollouts.components.throttle import Room
from rollouts.engine.decide.acts import ClearUpgradeState, Decision, HandOver, LiftHolds, PlaceHolds, RequeueFailed
from rollouts.engine.decide.budget import room_to_hand_over
from rollouts.engine.decide.releases import SOON
from rollouts.engine.decide.restoration import is_at_work, ours
from rollouts.engine.snapshot import NodeSnapshot, Snapshot
from rollouts.node_order.node_selection import next_wave
from wording.lists import names
from wording.numbers import are, count, either, stay

Nodes = dict[str, str]


def free_unchanged(snapshot: Snapshot) -> Decision | None:
    """Releases nodes that nothing changes afterwards; None if there are none.

    The operator does not check a queued node again, so the node's state is removed first (nvidia.md 2.8).
    """
    if queued := ours(snapshot, lambda node: node.phase is Phase.QUEUED and not snapshot.would_change(node)):
        sentence = f"Clearing the operator's mark on {count(len(queued), 'node')} that never changed."
        return Decision(sentence, acts=(ClearUpgradeState(queued),), look_again_in=SOON)
    if free := ours(snapshot, lambda node: node.phase in THROUGH and not snapshot.would_change(node)):
        return Decision(f"Releasing {count(len(free), 'node')}.", acts=(LiftHolds(free),), look_again_in=SOON)
    return None


def ask_to_hand_over(snapshot: Snapshot) -> Decision | None:
    """Holds the nodes that would change and asks a person; None if the plan holds no such node."""
    if snapshot.component.hold is None:
        return None
    known = (node for node in snapshot.nodes if node.hold_wanted is not None and not node.hold_is_foreign)
    free = (node for node in known if not (node.has_label and node.hold_wanted))
    if unheld := _named(node for node in free if _is_in_question(snapshot, node)):
        sentence = f"{_what_changed(snapshot)} Holding {count(len(unheld), 'node')} again."
        return Decision(sentence, acts=(PlaceHolds(unheld),), look_again_in=SOON)
    held = ours(snapshot, lambda node: snapshot.version.is_of_others or _is_in_question(snapshot, node))
    if not held:
        return None
    number = len(held)
    kept = (
        f"{count(number, 'node')} {stay(number)} held. If released, {either(number, 'it', 'they')} would take "
        "that change."
    )
    helps = f"A person decides: hand over the nodes, or restore {snapshot.version.old} and its template."
    return Decision(f"{_what_changed(snapshot)} {kept} {helps}")


def hand_over(snapshot: Snapshot) -> Decision | None:
    """Returns the next wave or its reason to wait; None if every node is released."""
    going, bound = snapshot.handover_nodes, snapshot.orders.wait_reason
    back = _named(node for node in going if not node.has_begun and (bound or node.uid in snapshot.orders.restrained))
    if back:
        reason = bound or snapshot.orders.restrained[next(iter(back))]
        sentence = f"Holding {names(tuple(back.values()))} again. {reason}"
        return Decision(sentence, acts=(PlaceHolds(back),), look_again_in=SOON)
    if bound or snapshot.stale_reason:
        return Decision(bound or snapshot.stale_reason)
    if unfinished := _named(node for node in going if node.has_label and not node.has_begun):
        return Decision(_says(snapshot, unfinished), acts=(HandOver(unfinished),), look_again_in=SOON)
    if freeing := free_unchanged(snapshot):
        return freeing
    if failed := ours(snapshot, lambda node: _keeps_a_slot(snapshot, node) and node.has_label):
        sentence = f"Putting {names(tuple(failed.values()))} back into the operator's queue."
        return Decision(sentence, acts=(RequeueFailed(failed),), look_again_in=SOON)
    wanted = [node for node in snapshot.nodes if node.uid in ours(snapshot) and _may_go(snapshot, node)]
    if wanted:
        return _wave(snapshot, wanted)
    if on_the_way := [*going, *(node for node in snapshot.nodes if node.uid in ours(snapshot) and is_at_work(node))]:
        way = f"{count(len(on_the_way), 'node')} {are(len(on_the_way))} on the way to {snapshot.version.handed_to}."
        return Decision(way, look_again_in=SOON)
    return None


def _wave(snapshot: Snapshot, wanted: list[NodeSnapshot]) -> Decision:
    still = f"{count(len(wanted), 'node')} must still change to {snapshot.version.handed_to}"
    if off := snapshot.policy.off:
        return Decision(f"{still}. {off.reason}: the operator changes no node. {off.fix}.")
    ready = [node for node in wanted if node.has_label and node.uid not in snapshot.orders.restrained]
    room = room_to_hand_over(snapshot)
    if going := _named(node for node in ready if node.name in _next(snapshot, ready, room)):
        return Decision(_says(snapshot, going), acts=(HandOver(going),), look_again_in=SOON)
    if ready and not room.nodes:
        return Decision(f"{still}; {room.reason}.{_failed_nodes_text(snapshot)}", look_again_in=SOON)
    if full := snapshot.budgets.waiting([node.name for node in ready]):
        return Decision(f"{still}. {next(iter(full.values()))}")
    if bound := [snapshot.orders.restrained[node.uid] for node in wanted if node.uid in snapshot.orders.restrained]:
        return Decision(f"{still}. {bound[0]}")
    return Decision(f"{still}.", look_again_in=timedelta(seconds=2))  # rows do not show their labels yet


def _next(snapshot: Snapshot, ready: list[NodeSnapshot], room: Room) -> tuple[str, ...]:
    """Returns the next nodes. Broken nodes come first; the budget counts them in any case."""
    if room.nodes or snapshot.handover_nodes:
        return next_wave([node.name for node in ready], room.nodes, snapshot.budgets)
    return next_wave([node.name for node in ready if node.is_unavailable], 1, snapshot.budgets)


def _keeps_a_slot(snapshot: Snapshot, node: NodeSnapshot) -> bool:
    """Returns whether the operator gave up on the node before its pod was replaced; only requeueing frees the slot."""
    return node.phase is Phase.FAILED and snapshot.would_change(node) and not snapshot.templates.is_in_sync(node)


def _failed_nodes_text(snapshot: Snapshot) -> str:
    known = (node for node in snapshot.nodes if node.hold_wanted is False and not node.hold_is_foreign)
    failed = tuple(node.name for node in known if _keeps_a_slot(snapshot, node))
    again = f"kubectl label node NODE {UPGRADE_STATE}={UPGRADE_REQUIRED} --overwrite"
    many = f"{names(failed)} failed, and {either(len(failed), 'keeps its slot', 'keep their slots')}"
    return f" {many}: read the events there, then {again}." if failed else ""


def _says(snapshot: Snapshot, going: Nodes) -> str:
    version = snapshot.version
    return f"Releasing {names(tuple(going.values()))} to {version.handed_to}, as {version.handed_by} decided."


def _may_go(snapshot: Snapshot, node: NodeSnapshot) -> bool:
    """Returns whether the operator would begin with the node."""
    return node.phase not in BEGUN and snapshot.would_change(node)


def _is_in_question(snapshot: Snapshot, node: NodeSnapshot) -> bool:
    """Returns whether the node is part of the handover.

    Nodes that this plan changed stay held, unless somebody else has changed the object.
    """
    is_ours = not snapshot.version.is_of_others and snapshot.version.write_intended and not snapshot.never_changed(node)
    return _may_go(snapshot, node) and not is_ours


def _named(nodes: Iterable[NodeSnapshot]) -> Nodes:
    return {node.uid: node.name for node in nodes}


def _what_changed(snapshot: Snapshot) -> str:
    if snapshot.version.template_change:
        return f"{snapshot.version.template_change}."
    if not snapshot.version.is_old:
        return f"{snapshot.version.by_others}."
    return "The driver pods have an earlier template than the object has now."
