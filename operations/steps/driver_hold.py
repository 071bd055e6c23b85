"""Hold of the driver: keeps the upgrade controller off a node, or ends that. Plans hold their nodes likewise.

The label belongs to whoever wrote it: a hold of a plan or of somebody else stays.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import ClassVar

from fleet.models import Node
from gpu.driver_hold import DRIVER_HOLD, hold_by, is_requeued, requeued, without_hold
from gpu.external_controllers import Metadata
from gpu.labels import CORDONED_BY, HELD_BY, UPGRADE_STATE
from gpu.upgrade_controller import LOOKS_EVERY, NOT_AT_WORK, UPGRADE_DONE, UPGRADE_FAILED, UPGRADE_REQUIRED
from kube import client
from kube.structs import NodeSeen
from operations.models.operation import MARK
from operations.restraints import DRIVER_VETOES
from operations.steps.base import NodeStep, NodeWork, StepResult, done_result, failed, wait
from wording.lists import names
from wording.numbers import are, either

UNCHANGED = ("", UPGRADE_DONE)
REMOVED_MARKS = "Somebody had removed the label. Quarterdeck's annotations are removed, too."


class HoldDriverStep(NodeStep):
    key: ClassVar[str] = "hold_driver"
    effect: ClassVar[str] = "The GPU Operator upgrades no driver there. A recreated driver pod runs the new version."
    takes_node: ClassVar[bool] = False
    waits_for_stop: ClassVar[bool] = False  # it keeps a change away
    vetoes = DRIVER_VETOES

    def why_not_offered(self, nodes: Sequence[Node]) -> dict[str, str]:
        held = {node.uid: "The driver of the node is held already." for node in nodes if node.is_held}
        return {node.uid: "The node has no upgrade state." for node in nodes if not node.upgrade_state} | held

    def warnings(self, nodes: Sequence[Node]) -> Iterable[str]:
        if unmanaged := [node.name for node in nodes if not node.upgrade_state]:
            have = either(len(unmanaged), "has", "have")
            yield f"{names(unmanaged)} {have} no upgrade state: there a hold has no effect."
        if held := [node for node in nodes if node.is_held]:
            yield f"{names([node.name for node in held])} {are(len(held))} held already. That hold stays."

    def run(self, work: NodeWork) -> StepResult:
        mark = work.operation.mark
        busy = holder = ""

        def held(observed: NodeSeen) -> client.Patch:
            nonlocal busy, holder
            state = observed.labels.get(UPGRADE_STATE, "")
            busy, holder = "" if state in NOT_AT_WORK else state, holder_of(observed)
            if busy or holder:
                return []
            hold = hold_by(mark, now=work.clock())
            return client.node_patch(observed, labels=hold.labels, annotations=hold.annotations)

        observed = work.change_node(held)
        if holder not in ("", mark):
            return done_result(f"Held already by {holder}. Quarterdeck leaves that hold.")
        if busy and not holder:
            return failed(f"The GPU Operator is changing the driver ({busy}): a hold does not stop it.")
        if not DRIVER_HOLD.is_on(observed.labels):
            return failed(f"The API server did not keep the label {DRIVER_HOLD.key}.")
        return done_result("Held: the upgrade controller leaves the node alone.")


class FreeDriverStep(NodeStep):
    """Frees a node, and follows the change that the operator then makes. So nodes go as the ledger has places."""

    key: ClassVar[str] = "free_driver"
    effect: ClassVar[str] = "The GPU Operator drains each node whose driver is to change. Done once it has changed."
    needs_place: ClassVar[bool] = True
    waits_for_freeze: ClassVar[bool] = True
    vetoes = DRIVER_VETOES
    progress: ClassVar[str] = "For the end of a driver hold: `freed_at`."

    def why_not_offered(self, nodes: Sequence[Node]) -> dict[str, str]:
        why = "Quarterdeck does not hold the driver of the node."
        return {node.uid: why for node in nodes if not node.held_by.startswith(MARK)}

    def warnings(self, nodes: Sequence[Node]) -> Iterable[str]:
        if queued := [node.name for node in nodes if node.upgrade_state == UPGRADE_REQUIRED]:
            yield (
                f"{names(queued)} {are(len(queued))} queued for a driver change. "
                "The operator begins it unless the driver is the wanted one."
            )
        if foreign := [node.name for node in nodes if node.is_held and not node.held_by.startswith(MARK)]:
            yield f"{names(foreign)} {are(len(foreign))} held by others. Those holds stay."

    def run(self, work: NodeWork) -> StepResult:
        if freed_at := work.node.progress.get("freed_at"):
            return _followed(work, freed_at)
        holder, is_ours, was_queued = "", False, False

        def freed(observed: NodeSeen) -> client.Patch:
            nonlocal holder, is_ours, was_queued
            holder, is_ours = holder_of(observed), observed.annotations.get(HELD_BY, "").startswith(MARK)
            if not is_ours:
                return []
            here = Metadata(observed.labels, observed.annotations)
            is_our_cordon = observed.annotations.get(CORDONED_BY, "").startswith(MARK)
            was_queued = is_requeued(here, is_unschedulable=observed.is_unschedulable, is_our_cordon=is_our_cordon)
            off, again = without_hold(here), requeued() if was_queued else Metadata()
            return client.node_patch(
                observed, labels={**off.labels, **again.labels}, annotations={**off.annotations, **again.annotations}
            )

        observed = work.change_node(freed)
        if DRIVER_HOLD.is_on(observed.labels):
            return failed(f"Held by {holder or 'somebody else'}. Quarterdeck does not remove that hold.")
        if not is_ours:
            return done_result("No hold was there.")
        if not was_queued and observed.labels.get(UPGRADE_STATE, "") in UNCHANGED:
            return done_result("Freed. The operator has no change to make." if holder else REMOVED_MARKS)
        return wait("Freed. The operator evaluates the node.", freed_at=work.clock().isoformat())


def _followed(work: NodeWork, freed: str) -> StepResult:
    """Returns how far the operator is with the node since it was freed.

    :raises ClusterError: when the cluster does not answer
    """
    observed = work.read_node()
    if holder := holder_of(observed):
        return failed(f"Freed, and held again by {holder}.")
    state = observed.labels.get(UPGRADE_STATE, "")
    if state == UPGRADE_FAILED:
        return failed("Freed. The operator gave up on the driver change.", freed_at=freed)
    if state == UPGRADE_DONE:
        return done_result("Freed. The node has the driver that the operator wants.", freed_at=freed)
    if not state and work.clock() - datetime.fromisoformat(freed) >= 2 * LOOKS_EVERY:
        minutes = int(2 * LOOKS_EVERY.total_seconds() // 60)
        return done_result(f"Freed. The operator did not evaluate the node in {minutes} minutes.", freed_at=freed)
    return wait(f"Freed. The operator: {state or 'no state yet'}.", freed_at=freed)


def holder_of(observed: NodeSeen) -> str:
    """Returns who holds the node's driver. Blank: nobody does."""
    if not DRIVER_HOLD.is_on(observed.labels):
        return ""
    return observed.annotations.get(HELD_BY, "")[:100] or "somebody else"
