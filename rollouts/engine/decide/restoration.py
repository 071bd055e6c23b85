"""Restores the old version: steps 1 to 4 of `rollback`, which an abort runs as well. Pure."""

from collections.abc import Callable

from rollouts.components.base import THROUGH, Phase
from rollouts.engine.decide.acts import ClearUpgradeState, Decision, LiftHolds, PlaceHolds, WriteVersion
from rollouts.engine.decide.holds import ask_which_template
from rollouts.engine.decide.node_retries import retried_targets
from rollouts.engine.decide.releases import SOON, recall
from rollouts.engine.decide.unmanaged_nodes import release_unmanaged_nodes
from rollouts.engine.snapshot import NodeSnapshot, Snapshot
from rollouts.lifecycle import IN_FLIGHT, PlanState, TargetState
from wording.lists import names
from wording.numbers import count, either


def restore(snapshot: Snapshot) -> Decision | None:
    """Returns the next of steps 1 to 4; None if they are done."""
    if recalls := recall(snapshot, snapshot.forward):
        return Decision(snapshot.says.recalling, acts=recalls, look_again_in=SOON)
    if unheld := _not_held(snapshot):
        sentence = snapshot.says.holding_first.format(nodes=count(len(unheld), "node"))
        return Decision(sentence, acts=(PlaceHolds(unheld),), look_again_in=SOON)
    if not (snapshot.version.is_old or snapshot.version.is_new):
        return Decision(f"{snapshot.version.by_others}. Set it back, or abort.")
    if not snapshot.version.is_old:
        act = WriteVersion(snapshot.version.current, snapshot.version.old)
        return Decision(f"Putting {snapshot.version.old} back.", acts=(act,), look_again_in=SOON)
    if snapshot.version.template_change:
        return ask_which_template(snapshot)
    if not _template_is_back(snapshot):
        return Decision("Waiting until every driver DaemonSet has its earlier template again.", look_again_in=SOON)
    if snapshot.stale_reason:
        return Decision(snapshot.stale_reason)
    return release_unmanaged_nodes(snapshot) or _release_unchanged(snapshot)


def _not_held(snapshot: Snapshot) -> dict[str, str]:
    """Returns the nodes to hold: every node until the version is restored, then only nodes that wait for their wave."""
    if not (snapshot.version.is_old and _template_is_back(snapshot)):
        return {node.uid: node.name for node in snapshot.nodes if not node.is_held or node.is_unwritten}
    waiting = (node for node in snapshot.nodes if not node.is_held and node.uid not in _released(snapshot))
    unwritten = (node for node in snapshot.nodes if node.is_unwritten and not snapshot.is_as_before(node))
    return {node.uid: node.name for node in (*unwritten, *waiting) if node.is_unwritten or _has_to_wait(snapshot, node)}


def _has_to_wait(snapshot: Snapshot, node: NodeSnapshot) -> bool:
    """Returns whether the changed node waits for a wave. A label cannot stop the operator's current work.

    An aborted plan holds such a node too, so that it is not queued again as soon as the operator has finished.
    """
    goes_on = is_at_work(node) and snapshot.state is not PlanState.ABORTING
    if snapshot.state is PlanState.ABORTING and snapshot.never_changed(node):
        return False
    return node.hold_wanted is not None and not goes_on and not snapshot.is_as_before(node)


def is_at_work(node: NodeSnapshot) -> bool:
    return node.phase is Phase.AT_WORK


def is_ours(node: NodeSnapshot) -> bool:
    return node.hold_wanted is not None and not node.hold_is_foreign


def _released(snapshot: Snapshot) -> frozenset[str]:
    """Returns the nodes of the waves so far. An aborted plan has none, since it holds them again."""
    if snapshot.state is PlanState.ABORTING:
        return frozenset()
    released = snapshot.rollback_stage.in_state(*IN_FLIGHT, TargetState.CHANGED, TargetState.FAILED)
    return frozenset(target.uid for target in released)


def _template_is_back(snapshot: Snapshot) -> bool:
    """Returns whether the newest templates are the recorded ones.

    DaemonSets that the plan did not know when it was sealed do not count.
    """
    known = {uid: newest for uid, newest in snapshot.templates.newest.items() if uid in snapshot.templates.recorded}
    return not snapshot.templates.unsettled and all(
        newest == snapshot.templates.recorded[uid] for uid, newest in known.items()
    )


def _release_unchanged(snapshot: Snapshot) -> Decision | None:
    if queued := ours(snapshot, lambda node: snapshot.is_as_before(node) and node.phase is Phase.QUEUED):
        sentence = f"Clearing the operator's mark on {count(len(queued), 'node')} that never changed."
        return Decision(sentence, acts=(ClearUpgradeState(queued, _failed_once(snapshot)),), look_again_in=SOON)
    # Switched off, the operator calls nobody done.
    evaluated = THROUGH if snapshot.policy.off else {Phase.DONE}
    if free := ours(snapshot, lambda node: snapshot.is_as_before(node) and node.phase in evaluated):
        sentence = f"Releasing {count(len(free), 'unchanged node')}."
        return Decision(sentence, acts=(LiftHolds(free),), look_again_in=SOON)
    if waiting := ours(snapshot, lambda node: snapshot.is_as_before(node) and node.phase is Phase.UNKNOWN):
        return Decision(
            f"Waiting until the operator reports {names(tuple(waiting.values()))} as done.", look_again_in=SOON
        )
    return None


def _failed_once(snapshot: Snapshot) -> frozenset[str]:
    """Returns retried nodes that carry the operator's cordon of the first try; the operator must remove it."""
    again = retried_targets(snapshot).keys() - snapshot.cordons.in_force.keys()
    return frozenset(node.uid for node in snapshot.nodes if node.uid in again and node.is_unschedulable)


def in_the_operators_hands(snapshot: Snapshot) -> Decision | None:
    """Waits for nodes with the old driver that the operator works on; it comes last, since nothing else depends on
    them."""
    stage = snapshot.rollback_stage
    left_out = {target.uid for target in stage.in_state(TargetState.EXCLUDED)}
    busy = ours(snapshot, lambda one: snapshot.is_as_before(one) and one.has_begun and one.uid not in left_out)
    if not busy:
        return None
    sentence = f"Waiting until the operator finishes {names(tuple(busy.values()))}, which did not change."
    return Decision(sentence, look_again_in=SOON)


def nobody_changed(snapshot: Snapshot) -> str:
    """Returns a sentence that no node changed. The driver of a released and removed node is unknown."""
    gone = [
        f"{target.name} {snapshot.gone[target.uid]}"
        for stage in snapshot.forward
        for target in stage.targets
        if target.uid in snapshot.gone and (target.baseline or target.is_lost)
    ]
    return f"{names(tuple(gone))}; no other node had changed" if gone else "No node had changed"


def nodes_with_foreign_hold(snapshot: Snapshot) -> tuple[str, ...]:
    """Returns nodes with a foreign hold and without the old driver: a pod recreated while armed took the new one."""
    return tuple(node.name for node in snapshot.nodes if node.hold_is_foreign and not snapshot.is_as_before(node))


def unmarked(snapshot: Snapshot) -> str:
    """Returns a clause about our labels without our annotation; nobody takes them for ours. Empty means none."""
    kept = tuple(
        node.name
        for node in (*snapshot.nodes, *snapshot.unmanaged_nodes)
        if node.has_label and node.hold_wanted is not None and not (node.is_held or may_have_our_hold(node))
    )
    held = either(len(kept), "keeps the label that held it", "keep the label that held them")
    return f"{names(kept)} {held}, because somebody removed this plan's mark. Remove the label by hand" if kept else ""


def came_since(snapshot: Snapshot) -> tuple[str, ...]:
    """Returns nodes that were never held and do not run the old driver: they joined around the time of the restore."""
    new = (node for node in snapshot.nodes if node.hold_wanted is None and not (node.is_held or node.busy_with))
    return tuple(node.name for node in new if not snapshot.is_as_before(node))


def ours(snapshot: Snapshot, wanted: Callable[[NodeSnapshot], bool] = lambda _: True) -> dict[str, str]:
    """Returns the nodes with our label that pass a test.

    Rows are late: a node that we want held, or know to have held, may carry our label before its row shows it.
    """
    ours = (node for node in snapshot.nodes if not node.hold_is_foreign and may_have_our_hold(node))
    return {node.uid: node.name for node in ours if wanted(node)}


def may_have_our_hold(node: NodeSnapshot) -> bool:
    return (node.has_label and node.label_is_ours) or node.label_was_placed or node.hold_wanted is True
