"""Out of service: the taint by which Kubernetes ends the pods of a node whose power is off (lifecycle R30).

kubernetes.io/docs/concepts/cluster-administration/node-shutdown, "Non-graceful node shutdown": a person first checks
that the node is off, and not in the middle of a restart. The taint is removed once the node has recovered. While it is
there and the node is not Ready, pkg/controller/podgc/gc_controller.go (gcTerminating) ends its pods by force.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, ClassVar

from django.db.models import Exists, OuterRef, Q, QuerySet

from fleet.models import Node
from gpu.labels import OUT_OF_SERVICE, OUT_OF_SERVICE_BY
from kube import client
from kube.structs import NodeSeen, Taint
from operations.lifecycle import NodeProgress
from operations.models import Operation, OperationNode
from operations.models.maintenance_request import LANDS_WITHIN
from operations.models.operation import LONGEST_REASON
from operations.node_writer import NotWritten, change_node, read_node
from operations.refusals import BadOperation
from operations.restraints import freezes_of, stop_reason
from operations.steps.base import NodeStep, NodeWork, StepResult, done_result, failed, wait
from operations.steps.evictions import LEFT_ALONE
from operations.steps.options import TextOption
from operations.stop_switch import stopped_by_switch
from wording.lists import names
from wording.numbers import count

TAINT = Taint(OUT_OF_SERVICE, "nodeshutdown", "NoExecute")
AGAIN_AFTER = timedelta(seconds=10)
TROUBLE = "trouble"  # in the progress of a node: why a person has to look, until it ends
FOREIGN = "Another client has marked the node out of service. Quarterdeck leaves that taint."
REMOVED = "Somebody else removed the taint. No mark of Quarterdeck is left."
POWERED = (
    "Ready again with the boot ID of before: the power was not off. Reboot the node, or cancel to remove the taint."
)


class OutOfServiceStep(NodeStep):
    """A step that runs until the node is back: the taint does not outlive its reason. A cancel removes it, too."""

    key: ClassVar[str] = "out_of_service"
    options = (
        TextOption(
            "powered_off", "Name of the node whose power is off: type it once you have checked",
            "Of the kind out-of-service: the name of the node, by whoever checked that its power is off.", longest=253,
            is_wide=True,
        ),
    )  # fmt: skip
    effect: ClassVar[str] = "Kubernetes ends the pods by force and detaches their volumes."
    evicts: ClassVar[bool] = True
    needs_approval: ClassVar[str] = "All pods of the node are ended past their budgets. Another person approves it."
    waits_for_freeze: ClassVar[bool] = True
    outlasts_freeze: ClassVar[bool] = True
    waits_for_others: ClassVar[bool] = True
    progress: ClassVar[str] = (
        "For out-of-service: `boot_id`, of the boot before, the number of pods `left`, and `trouble` for a person."
    )

    def complete(self, options: Mapping[str, Any], nodes: Sequence[Node]) -> dict[str, Any]:
        if talking := [node.name for node in nodes if node.is_ready is not None]:
            raise BadOperation(("nodes", f"The kubelet of {names(talking)} reports, so the power is on. Drain it."))
        if any((options.get("powered_off") or "").strip() != node.name for node in nodes):
            raise BadOperation(("powered_off", "Check that the power is off, then type the name of the node."))
        return dict(options)

    def why_not_offered(self, nodes: Sequence[Node]) -> dict[str, str]:
        return {node.uid: "The kubelet of the node reports." for node in nodes if node.is_ready is not None}

    def warnings(self, nodes: Sequence[Node]) -> Iterable[str]:
        yield "With the power on, two pods may write to one volume. Check the power at the BMC or the cloud."

    def run(self, work: NodeWork) -> StepResult:
        before: NodeSeen | None = None
        frozen = ""

        def wanted(observed: NodeSeen) -> client.Patch:
            nonlocal before, frozen
            before = observed
            if (ours := _boot_of(observed, work.operation)) is not None:
                is_over = not _is_marked(observed) or _has_booted(observed, ours)
                return _unmarked_by(work.operation)(observed) if is_over else []
            if "boot_id" in work.node.progress or _is_marked(observed) or _why_not(observed):
                return []
            uid = work.node.node_uid
            frozen = freezes_of(work.operation.cluster_id, [uid], now=work.clock()).get(uid, "")
            mark = {OUT_OF_SERVICE_BY: f"{work.operation.mark} {observed.status.node_info.boot_id}"}
            return [] if frozen else client.taint_patch(observed, TAINT, annotations=mark)

        try:
            after = work.change_node(wanted)
        except NotWritten as trouble:
            ours = _boot_of(before, work.operation) if before else None
            if ours is None:
                raise
            return _still_marked(ours, str(trouble))
        if frozen:
            return wait(frozen, again_after=AGAIN_AFTER)
        return _result(work, before or after, after)

    def left_behind(self) -> Sequence[int]:
        return list(_uncleaned().values_list("operation", flat=True).distinct())

    def clean_up(self, operation: Operation, connection: client.Connection, *, clock: Callable[[], datetime]) -> None:
        """Removes the taint of a cancelled node, whose boot is not followed any more, and of a failed one that booted.

        As everything else that is written, the removal waits for the end of a stop.
        """

        def guard() -> None:
            if held_back := stop_reason(now=clock()) or stopped_by_switch(operation.cluster, connection):
                raise NotWritten(held_back)

        for row in _uncleaned().filter(operation=operation):
            try:
                observed = read_node(connection, row.node_uid, row.node_name)
            except (client.Absent, NotWritten):
                _record_cleaned(row, "The node left the cluster.")
                continue
            ours = _boot_of(observed, operation)
            if ours is None:
                if "boot_id" in row.progress or clock() - operation.lease_until > LANDS_WITHIN:
                    _record_cleaned(row, row.reason)
            elif row.state == NodeProgress.CANCELLED or _has_booted(observed, ours):
                try:
                    change_node(connection, row.node_uid, row.node_name, _unmarked_by(operation), before_write=guard)
                except NotWritten as trouble:
                    reason = f"The taint is not removed yet: {trouble}"[:LONGEST_REASON]
                    OperationNode.objects.filter(pk=row.pk, state=row.state).update(reason=reason)
                else:
                    _record_cleaned(row, f"{NodeProgress(row.state).capitalize()}. The taint is removed.")


def _uncleaned() -> QuerySet[OperationNode]:
    """Returns the cancelled nodes, and the failed ones that report, that may have or still get our taint."""
    reporting = Node.objects.filter(uid=OuterRef("node_uid"), is_ready__isnull=False)
    rows = OperationNode.objects.of_kinds("out-of-service").filter(progress__cleaned__isnull=True)
    return rows.filter(Q(state=NodeProgress.CANCELLED) | Q(Exists(reporting), state=NodeProgress.FAILED))


def _record_cleaned(row: OperationNode, reason: str) -> None:
    rows = OperationNode.objects.filter(pk=row.pk, state=row.state)
    rows.update(progress={**row.progress, "cleaned": True}, reason=reason)


def _result(work: NodeWork, before: NodeSeen, after: NodeSeen) -> StepResult:
    """Returns the result of a round that found the node as `before` and left it as `after`."""
    ours = _boot_of(before, work.operation)
    if ours is None:
        return _marked(work, before, after)
    if not _is_marked(before):
        return done_result(REMOVED)
    if not _has_booted(before, ours):
        return _pods_left(work, before, ours)
    if _is_marked(after):
        return _still_marked(ours, "the API server kept it.")
    return done_result("The node booted. The taint is removed, and the cordon stays.", boot_id=ours)


def _marked(work: NodeWork, before: NodeSeen, after: NodeSeen) -> StepResult:
    """Returns the result for a node that had no mark of this operation."""
    if "boot_id" in work.node.progress:
        if not _is_marked(before):
            return done_result(REMOVED)
        by_hand = f"kubectl taint node {work.node.node_name} {OUT_OF_SERVICE}-"
        return failed(f"Somebody removed Quarterdeck's mark and left the taint. Once the node is back: {by_hand}")
    if _is_marked(before):
        return done_result(FOREIGN)
    if why_not := _why_not(before):
        return failed(why_not)
    ours = _boot_of(after, work.operation)
    if ours is None or not _is_marked(after):
        return failed(f"The API server did not keep {TAINT.key}.")
    return wait("Marked out of service. Kubernetes ends its pods.", again_after=AGAIN_AFTER, boot_id=ours)


def _still_marked(boot_id: str, trouble: str) -> StepResult:
    says = f"The taint is not removed yet: {trouble}"
    return wait(says, again_after=AGAIN_AFTER, boot_id=boot_id, **{TROUBLE: says})


def _boot_of(observed: NodeSeen, operation: Operation) -> str | None:
    """Returns the boot ID that our mark holds. None: the node has no mark of this operation."""
    owner, _, boot_id = observed.annotations.get(OUT_OF_SERVICE_BY, "").partition(" ")
    return boot_id if owner == operation.mark else None


def _unmarked_by(operation: Operation) -> Callable[[NodeSeen], client.Patch]:
    def unmarked(observed: NodeSeen) -> client.Patch:
        if _boot_of(observed, operation) is None:
            return []
        return client.taint_patch(observed, TAINT, is_on=False, annotations={OUT_OF_SERVICE_BY: None})

    return unmarked


def _is_marked(observed: NodeSeen) -> bool:
    return any(taint.key == OUT_OF_SERVICE for taint in observed.spec.taints or ())


def _has_booted(observed: NodeSeen, boot_id: str) -> bool:
    """Returns whether the node has another boot, and its kubelet reports.

    It need not be Ready: a DaemonSet of the network that does not tolerate the taint starts only once it is gone.
    """
    is_reporting = observed.ready is not None and observed.ready.status != "Unknown"
    return is_reporting and observed.status.node_info.boot_id != boot_id


def _why_not(observed: NodeSeen) -> str:
    """Returns why the node is not marked, from the node itself. Blank: it may be."""
    if not observed.is_unschedulable:
        return "The node is not cordoned: pods would start there once it is back. Quarantine it first."
    if observed.ready is not None and observed.ready.status != "Unknown":
        return f"The kubelet reports Ready={observed.ready.status}, so the power is on."
    return ""


def _pods_left(work: NodeWork, observed: NodeSeen, boot_id: str) -> StepResult:
    if observed.ready is not None and observed.ready.status == "True":
        return wait(POWERED, again_after=AGAIN_AFTER, boot_id=boot_id, **{TROUBLE: POWERED})
    pods = client.list_pods_on(work.connection, work.node.node_name)
    left = sum(1 for pod in pods if not (pod.metadata.owner and pod.metadata.owner.kind in LEFT_ALONE))
    what = f"{count(left, 'pod')} left." if left else "All pods are gone."
    return wait(f"{what} The taint goes when the node has booted.", again_after=AGAIN_AFTER, boot_id=boot_id, left=left)
