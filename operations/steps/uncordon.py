"""Release from quarantine: removes what an operation wrote, and nothing else."""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import ClassVar

from fleet.models import Node
from gpu.cordons import sentinel_keeps, whose_other_cordon
from gpu.labels import CORDONED_BY, UPGRADE_STATE
from gpu.upgrade_controller import NOT_AT_WORK
from kube import client
from kube.structs import NodeSeen
from operations.external_owner import external_owner_on
from operations.models import OperationNode, Quarantine
from operations.node_exclusion import inclusion_of
from operations.restraints import RELEASE_VETOES
from operations.steps.base import HELD, NodeStep, NodeWork, StepResult, done_result, failed, wait, yielded


class UncordonStep(NodeStep):
    key: ClassVar[str] = "uncordon"
    effect: ClassVar[str] = "New pods may start there."
    vetoes = RELEASE_VETOES
    waits_for_others: ClassVar[bool] = True

    def why_not_begin(self, nodes: Collection[OperationNode], *, now: datetime) -> dict[str, str]:
        uids = set(Quarantine.objects.of_nodes([node.node_uid for node in nodes]).values_list("node_uid", flat=True))
        held = {
            row.uid: f"{HELD}: {kept}"
            for row in Node.objects.filter(uid__in=uids, is_unschedulable=True)
            if (kept := _kept_by_sentinel(row.name, row.labels, row.annotations))
        }
        return held | super().why_not_begin([node for node in nodes if node.node_uid in uids], now=now)

    def run(self, work: NodeWork) -> StepResult:
        rows = Quarantine.objects.of_nodes([work.node.node_uid]).select_related("operation")
        row = rows.first()
        busy = held = ""

        def uncordoned(observed: NodeSeen) -> client.Patch:
            nonlocal busy, held
            busy = driver_change(observed)
            held = _why_held(observed, work.node.node_name)
            if row is None or busy or held:
                return []
            return release_patch(row, observed)

        observed = work.change_node(uncordoned)
        if busy:
            return wait(busy, again_after=timedelta(seconds=15))
        if held and row is not None:
            return yielded(f"{HELD}: {held}")
        if row is not None and row.placed_at is None and not observed.is_unschedulable:
            _void_late_cordon(work, row)
        whose = whose_other_cordon(observed.annotations, observed.cordoned_by, observed.labels)
        left = whose if observed.is_unschedulable else ""
        if row is not None:
            row.end(now=work.clock(), left_reason=f"Still cordoned{left}." if left else "")
        if left:
            return failed(f"Cordoned{left}. Quarterdeck removes only cordons with its mark.")
        return done_result("Uncordoned. New pods may start here." if row else "It was not cordoned.")


def _void_late_cordon(work: NodeWork, row: Quarantine) -> None:
    """Changes the node once, so that a cordon whose answer was lost no longer fits its resourceVersion.

    The patch may still be on its way to the API server, and nobody would own the cordon after this release.
    """

    def marked(observed: NodeSeen) -> client.Patch:
        if observed.is_unschedulable or CORDONED_BY in observed.annotations:
            return []
        return client.node_patch(observed, annotations={CORDONED_BY: row.operation.mark})

    def unmarked(observed: NodeSeen) -> client.Patch:
        if observed.annotations.get(CORDONED_BY) != row.operation.mark:
            return []
        return client.node_patch(observed, annotations={CORDONED_BY: None})

    work.change_node(marked)
    work.change_node(unmarked)


def driver_change(observed: NodeSeen) -> str:
    """Returns a sentence about the change of the driver on the node. Blank: none is in progress."""
    state = observed.labels.get(UPGRADE_STATE, "")
    return "" if state in NOT_AT_WORK else f"The GPU Operator is changing the driver ({state})."


def release_patch(row: Quarantine, observed: NodeSeen) -> client.Patch:
    """Returns the patch that removes what a quarantine wrote. A foreign cordon stays."""
    beside = inclusion_of(row, observed)
    if observed.annotations.get(CORDONED_BY) != row.operation.mark:
        return client.node_patch(observed, labels=beside.labels, annotations=beside.annotations)
    annotations = {**beside.annotations, CORDONED_BY: None}
    return client.node_patch(observed, labels=beside.labels, annotations=annotations, is_unschedulable=False)


def _why_held(observed: NodeSeen, name: str) -> str:
    """Returns who else keeps the node out of service (lifecycle R2, R18). Blank: nobody."""
    if external := external_owner_on(observed):
        return external.sentence
    return _kept_by_sentinel(name, observed.labels, observed.annotations) if observed.is_unschedulable else ""


def _kept_by_sentinel(name: str, labels: Mapping[str, str], annotations: Mapping[str, str]) -> str:
    mark = sentinel_keeps(labels, annotations)
    if not mark:
        return ""
    waits = f"NVSentinel quarantines or validates the node ({mark}). Wait for it, or cancel its break-fix."
    return f"{waits} If NVSentinel left the mark behind, remove it: kubectl annotate node {name} {mark}-"
