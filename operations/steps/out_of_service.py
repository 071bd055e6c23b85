"""Out of service: the taint by which Kubernetes ends the pods of a node whose power is off (lifecycle R30).

kubernetes.io/docs/concepts/cluster-administration/node-shutdown, "Non-graceful node shutdown": a person first checks
that the node is off, and not in the middle of a restart. The taint is removed once the node has recovered. While it is
there and the node is not Ready, pkg/controller/podgc/gc_controller.go (gcTerminating) ends its pods by force.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, ClassVar

from django.db.models import QuerySet

from fleet.models import Node
from gpu.labels import OUT_OF_SERVICE, OUT_OF_SERVICE_BY
from kube import client
from kube.structs import NodeSeen, Taint
from operations.lifecycle import NodeProgress
from operations.models import Operation, OperationNode
from operations.node_writer import NotWritten, change_node, read_node
from operations.refusals import BadOperation
from operations.steps.base import NodeStep, NodeWork, StepResult, done_result, failed, wait
from operations.steps.evictions import LEFT_ALONE
from operations.steps.options import TextOption
from wording.lists import names
from wording.numbers import count

TAINT = Taint(OUT_OF_SERVICE, "nodeshutdown", "NoExecute")
AGAIN_AFTER = timedelta(seconds=10)
FOREIGN = "Another client has marked the node out of service. Quarterdeck leaves that taint."
REMOVED = "Somebody else removed the taint. No mark of Quarterdeck is left."


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
    waits_for_freeze: ClassVar[bool] = True
    waits_for_others: ClassVar[bool] = True
    progress: ClassVar[str] = "For out-of-service: `boot_id`, of the boot before, and the number of pods `left`."

    def complete(self, options: Mapping[str, Any], nodes: Sequence[Node]) -> dict[str, Any]:
        if talking := [node.name for node in nodes if node.is_ready is not None]:
            raise BadOperation(("nodes", f"The kubelet of {names(talking)} reports, so the power is on. Drain it."))
        if any((options.get("powered_off") or "").strip() != node.name for node in nodes):
            raise BadOperation(("powered_off", "Check that the power is off, then type the name of the node."))
        return dict(options)

    def warnings(self, nodes: Sequence[Node]) -> Iterable[str]:
        yield "With the power on, two pods may write to one volume. Check the power at the BMC or the cloud."

    def run(self, work: NodeWork) -> StepResult:
        observed = work.read_node()
        ours, is_marked = _boot_of(observed, work.operation), _is_marked(observed)
        if ours is None and is_marked:
            return done_result(FOREIGN)
        if ours is None and not work.node.progress.get("boot_id"):
            return self._mark(work)
        if ours is None or not is_marked:
            work.change_node(_unmarked_by(work.operation))
            return done_result(REMOVED)
        if not _is_ready(observed):
            return _pods_left(work, ours)
        if observed.status.node_info.boot_id == ours:
            why = "Ready again with the boot ID of before: the power was not off."
            return wait(f"{why} Reboot the node, or cancel to remove the taint.", again_after=AGAIN_AFTER, boot_id=ours)
        if _is_marked(work.change_node(_unmarked_by(work.operation))):
            return failed(f"The API server did not remove the taint {OUT_OF_SERVICE}.", boot_id=ours)
        return done_result("The node booted and is Ready. The taint is removed, and the cordon stays.", boot_id=ours)

    def _mark(self, work: NodeWork) -> StepResult:
        why_not = ""

        def marked(observed: NodeSeen) -> client.Patch:
            nonlocal why_not
            why_not = _why_not(observed)
            boot_id = observed.status.node_info.boot_id
            mark = {OUT_OF_SERVICE_BY: f"{work.operation.mark} {boot_id}"}
            return [] if why_not or _is_marked(observed) else client.taint_patch(observed, TAINT, annotations=mark)

        observed = work.change_node(marked)
        ours = _boot_of(observed, work.operation)
        if why_not:
            return failed(why_not)
        if not _is_marked(observed) or ours is None:
            return done_result(FOREIGN) if _is_marked(observed) else failed(f"The API server did not keep {TAINT.key}.")
        return wait("Marked out of service. Kubernetes ends its pods.", again_after=AGAIN_AFTER, boot_id=ours)

    def left_behind(self) -> Sequence[int]:
        return list(_cancelled().values_list("operation", flat=True).distinct())

    def clean_up(self, operation: Operation, connection: client.Connection, *, clock: Callable[[], datetime]) -> None:
        """Removes the taint of a cancelled node: its boot is not followed any more."""
        for row in _cancelled().filter(operation=operation):
            try:
                read_node(connection, row.node_uid, row.node_name)
            except (client.Absent, NotWritten):
                _record_cleaned(row, "The node left the cluster.")
                continue
            try:
                change_node(connection, row.node_uid, row.node_name, _unmarked_by(operation), before_write=lambda: None)
            except NotWritten as trouble:
                OperationNode.objects.filter(pk=row.pk).update(reason=f"The taint is not removed yet: {trouble}"[:1000])
            else:
                _record_cleaned(row, "Cancelled. The taint is removed.")


def _cancelled() -> QuerySet[OperationNode]:
    rows = OperationNode.objects.of_kinds("out-of-service").filter(state=NodeProgress.CANCELLED)
    return rows.filter(progress__cleaned__isnull=True)


def _record_cleaned(row: OperationNode, reason: str) -> None:
    OperationNode.objects.filter(pk=row.pk).update(progress={**row.progress, "cleaned": True}, reason=reason)


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


def _is_ready(observed: NodeSeen) -> bool:
    return observed.ready is not None and observed.ready.status == "True"


def _why_not(observed: NodeSeen) -> str:
    """Returns why the node is not marked, from the node itself. Blank: it may be."""
    if not observed.is_unschedulable:
        return "The node is not cordoned: pods would start there once it is back. Quarantine it first."
    if observed.ready is not None and observed.ready.status != "Unknown":
        return f"The kubelet reports Ready={observed.ready.status}, so the power is on."
    return ""


def _pods_left(work: NodeWork, boot_id: str) -> StepResult:
    pods = client.list_pods_on(work.connection, work.node.node_name)
    left = sum(1 for pod in pods if not (pod.metadata.owner and pod.metadata.owner.kind in LEFT_ALONE))
    what = f"{count(left, 'pod')} left." if left else "All pods are gone."
    says = f"{what} The taint goes when the node has booted and is Ready."
    return wait(says, again_after=AGAIN_AFTER, boot_id=boot_id, left=left)
