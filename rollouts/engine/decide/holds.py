"""Holds every node of the driver object, and sees the holds, before the version is written (Z1). Pure."""

from dataclasses import replace
from datetime import datetime, timedelta

from rollouts.components.base import Phase
from rollouts.engine.decide.acts import (
    Decision,
    FinishRelease,
    HandOver,
    LiftHolds,
    MovePlan,
    PlaceHolds,
    ReleaseUnmanagedNodes,
    ReleaseWave,
    WriteVersion,
)
from rollouts.engine.decide.releases import SOON
from rollouts.engine.decide.unmanaged_nodes import release_unmanaged_nodes
from rollouts.engine.snapshot import Snapshot
from rollouts.lifecycle import PlanState
from wording.lists import names
from wording.numbers import are, count, either, every_one_of


def changed_template(snapshot: Snapshot) -> str:
    what = f"{snapshot.version.template_change}, so new driver pods differ from the approved template."
    return f"{what} Restore it, or resume to accept it. After that, each later stage needs a new approval."


def ask_which_template(snapshot: Snapshot) -> Decision:
    """Asks a person: the old version is restored, but its pods differ from the recorded template."""
    old = snapshot.version.old
    asks = f"{old} is back in the object, but not its earlier template. {snapshot.version.template_change}."
    helps = "Restore the template and resume, or resume to accept it: every node of the object then gets this template."
    return Decision(f"{asks} {helps}", pause_reason=f"{asks} {helps}")


def hold_all(snapshot: Snapshot, *, now: datetime) -> Decision:  # noqa: ARG001
    if snapshot.version.object_trouble:
        return Decision(
            snapshot.version.object_trouble, moves=(MovePlan(PlanState.HALTED, snapshot.version.object_trouble),)
        )
    if snapshot.version.is_new and snapshot.version.write_intended:
        reason = snapshot.says.written.format(version=snapshot.version.new)
        return Decision(reason, moves=(MovePlan(PlanState.PROMOTING, reason),), look_again_in=timedelta(0))
    if not snapshot.version.is_old:
        reason = (
            f"The version is {snapshot.version.current or 'not set'}; this plan starts from {snapshot.version.old}."
        )
        return Decision(reason, moves=(MovePlan(PlanState.HALTED, reason),))
    if snapshot.version.template_change:
        reason = changed_template(snapshot)
        return Decision(reason, moves=(MovePlan(PlanState.HALTED, reason),), void_reason=reason)
    if waits := _not_yet(snapshot):
        return Decision(waits)
    free = (node for node in snapshot.nodes if (not node.is_held and not node.has_begun) or node.is_unwritten)
    if unheld := {node.uid: node.name for node in free}:
        sentence = snapshot.says.holding_all.format(version=snapshot.version.new)
        return Decision(sentence, acts=(PlaceHolds(unheld),), look_again_in=timedelta(0))
    if snapshot.templates.has_daemonsets and (freeing := release_unmanaged_nodes(snapshot)):
        return freeing
    if moving := _from_an_earlier_change(snapshot):
        return Decision(moving)
    if snapshot.templates.unsettled:
        return Decision(
            f"The controller has not seen the latest {snapshot.templates.unsettled[0]} yet.", look_again_in=SOON
        )
    act = WriteVersion(snapshot.version.old, snapshot.version.new)
    number = len(snapshot.nodes)
    sentence = snapshot.says.writing.format(
        version=snapshot.version.new, every=every_one_of(number, "node"), are=are(number)
    )
    return Decision(sentence, acts=(act,), look_again_in=SOON)


def _from_an_earlier_change(snapshot: Snapshot) -> str:
    """Returns the nodes that are still in an earlier upgrade; empty means none."""
    if failed := tuple(node.name for node in snapshot.nodes if node.phase is Phase.FAILED):
        helps = f"Repair {either(len(failed), 'it', 'them')} first (docs/takeover.md), or abort."
        return f"{names(failed)} failed in an earlier change, and the operator gave up. {helps}"
    moving = [node for node in snapshot.nodes if node.has_begun]
    still = f"{count(len(moving), 'node')} {are(len(moving))} still on the way from an earlier change"
    return f"{still}, such as {moving[0].name}." if moving else ""


def _not_yet(snapshot: Snapshot) -> str:
    if blocked := snapshot.orders.wait_reason or snapshot.stale_reason:
        return blocked
    if off := snapshot.policy.off:
        return f"{off.reason}: the operator would not change any node. {off.fix}, or abort."
    if snapshot.operator_down:
        return f"{snapshot.operator_down} The plan waits until it runs before it writes the version."
    busy = next((node for node in snapshot.nodes if node.busy_with), None)
    return (
        f"{busy.busy_with} is changing {busy.name}. The plan waits, because a node has only one change at a time."
        if busy
        else ""
    )


RELEASING_ACTS = (LiftHolds, ReleaseUnmanagedNodes, HandOver, ReleaseWave, FinishRelease)


def under_a_stop(snapshot: Snapshot, decision: Decision) -> Decision:
    kept = tuple(act for act in decision.acts if not isinstance(act, RELEASING_ACTS))
    if not snapshot.orders.stopped_reason or len(kept) == len(decision.acts):
        return decision
    return replace(decision, waiting_for=snapshot.orders.stopped_reason, acts=kept)
