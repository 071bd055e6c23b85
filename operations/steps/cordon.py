"""Quarantine: a cordon with our owner annotation, and no autoscaler there. Running pods stay."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import ClassVar

from fleet.models import Node, PodPlacement
from fleet.observer.mirror.rows.pod import pod_row
from gpu.cordons import whose_other_cordon
from gpu.labels import CORDONED_BY
from kube import client
from kube.structs import NodeSeen
from operations.lifecycle import NEW_NODE
from operations.models import Operation, OperationNode, Quarantine
from operations.node_exclusion import exclusion_of, record_values
from operations.node_writer import NotWritten, change_node
from operations.steps.base import NodeStep, NodeWork, StepResult, done_result, failed
from wording.lists import names
from wording.numbers import are


class _Serves(Exception):
    """A node that counts as new has or had pods with GPUs."""


class CordonStep(NodeStep):
    key: ClassVar[str] = "cordon"
    waits_for_stop: ClassVar[bool] = False  # it moves no pod and changes no driver

    def warnings(self, nodes: Sequence[Node]) -> Iterable[str]:
        own = set(Quarantine.objects.of_nodes([node.uid for node in nodes]).values_list("node_uid", flat=True))
        if cordoned := [node.name for node in nodes if node.is_unschedulable and node.uid not in own]:
            yield f"{names(cordoned)} {are(len(cordoned))} cordoned already. A foreign cordon stays."

    def intend(self, operation: Operation, node: OperationNode, *, now: datetime) -> None:
        if not Quarantine.objects.of_nodes([node.node_uid]).exists():
            Quarantine.objects.create(
                cluster_id=operation.cluster_id, operation=operation, node_uid=node.node_uid, node_name=node.node_name,
                wanted_since=now,
            )  # fmt: skip

    def run(self, work: NodeWork) -> StepResult:
        row = Quarantine.objects.of_nodes([work.node.node_uid]).select_related("operation").first()
        if row is None:  # an earlier try ended it, and its result was lost; or the node left
            return failed("Quarterdeck has no cordon on the node. Retry to read the node again.")

        def guard() -> None:
            if row.placed_at is None and work.operation.options.get(NEW_NODE) and (pod := pod_served(work)):
                raise _Serves(f"{pod} has GPUs of the node: it serves already, and is not held.")
            work.guard()  # the last check: a cancel may come while the pods are listed

        try:
            observed = cordon(row, work.connection, guard=guard)
        except _Serves as serves:
            row.end(now=work.clock())
            return failed(str(serves), serves=True)
        except NotWritten as trouble:
            row.end(now=work.clock())
            return failed(str(trouble))
        now = work.clock()
        if observed.annotations.get(CORDONED_BY) != row.operation.mark:
            whose = whose_other_cordon(observed.annotations, observed.cordoned_by, observed.labels)
            row.end(now=now, left_reason=f"Cordoned before{whose}.")
            return done_result(f"Already cordoned{whose}. Quarterdeck does not remove that cordon.")
        Quarantine.objects.in_force().filter(pk=row.pk, placed_at=None).update(placed_at=now)
        Quarantine.objects.in_force().filter(pk=row.pk).update(removed_at=None)
        return done_result("Cordoned. New pods do not start here; running pods stay.")


def pod_served(work: NodeWork) -> str:
    """Returns a pod of a tenant that has or had GPUs of the node, as the cluster lists them now. Blank: none."""
    for pod in client.list_pods_on(work.connection, work.node.node_name):
        if pod_row(pod)["is_tenant"]:
            return f"{pod.namespace}/{pod.name}"
    earlier = PodPlacement.objects.filter(cluster=work.operation.cluster_id, node_uid=work.node.node_uid).first()
    return str(earlier) if earlier else ""


def cordon(row: Quarantine, connection: client.Connection, *, guard: Callable[[], None]) -> NodeSeen:
    """Writes the cordon of a quarantine, and returns the node as it is then. A foreign cordon stays.

    :raises NotWritten: as `change_node` does
    """

    with suppress(client.Absent):  # `change_node` reports it
        record_values(row, connection)

    def cordoned(observed: NodeSeen) -> client.Patch:
        owner = observed.annotations.get(CORDONED_BY)
        if owner != row.operation.mark and (owner or observed.is_unschedulable):
            return []  # somebody else's cordon: left alone
        beside = exclusion_of(row, observed)
        annotations = {**beside.annotations, CORDONED_BY: row.operation.mark}
        return client.node_patch(observed, labels=beside.labels, annotations=annotations, is_unschedulable=True)

    return change_node(connection, row.node_uid, row.node_name, cordoned, before_write=guard)
