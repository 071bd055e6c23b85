"""Quarantines whose cordon somebody else removed: written again after the GPU stack, else a person is asked (Z7, R40).

The API server does not record who removes a cordon. The driver manager uncordons a node at each start of its driver
pod, and the GPU Operator at the end of an upgrade. A removal without such a sign may be a person's decision.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import datetime, timedelta

import structlog
from django.db.models import Exists, OuterRef

from edges.transition_errors import LostRace
from fleet.models import Cluster, ClusterMode, Node, Pod
from gpu.labels import CORDONED_BY, UPGRADE_STATE
from gpu.operands import DRIVER
from gpu.upgrade_controller import NOT_AT_WORK
from kube import client
from kube.structs import NodeSeen
from operations.ledger.disruptions import count_in_service
from operations.models import Quarantine
from operations.node_writer import NotWritten
from operations.steps.cordon import cordon
from operations.writer_lease import Forfeit, take_writer_lease
from people.models import AuditEntry

log = structlog.get_logger()
ACTOR = "engine"
RECENT = timedelta(minutes=30)  # since the start of a driver pod: its init container uncordons the node
RESTORED = "The driver manager uncordoned the node, as at each start of a driver. It is cordoned again."


def follow_quarantines(*, clock: Callable[[], datetime]) -> None:
    """Cordons nodes again that the GPU stack uncordoned, and notes other removals. One query when there are none."""
    schedulable = Node.objects.filter(uid=OuterRef("node_uid"), is_unschedulable=False)
    cordoned = Node.objects.filter(uid=OuterRef("node_uid"), is_unschedulable=True)
    placed = Quarantine.objects.in_force().filter(placed_at__isnull=False)
    by_cluster: dict[Cluster, list[Quarantine]] = defaultdict(list)
    rows = placed.filter(Exists(schedulable), removed_at=None, cluster__mode=ClusterMode.OPERATE)
    for row in rows.select_related("operation", "cluster").order_by("pk"):
        by_cluster[row.cluster].append(row)
    for cluster, its in by_cluster.items():
        _follow(cluster, its, clock=clock)
    placed.filter(Exists(cordoned), removed_at__isnull=False).update(removed_at=None)


def _follow(cluster: Cluster, rows: Sequence[Quarantine], *, clock: Callable[[], datetime]) -> None:
    try:
        with closing(client.connect(cluster.kubeconfig, cluster.context)) as connection:
            take_writer_lease(connection, cluster, now=clock())
            for row in rows:
                _follow_node(row, connection, clock=clock)
    except (client.ClusterError, Forfeit) as trouble:
        log.warning("quarantines are not followed", cluster=cluster.name, error=str(trouble))


def _follow_node(row: Quarantine, connection: client.Connection, *, clock: Callable[[], datetime]) -> None:
    try:
        observed = client.get_node(connection, row.node_name)
    except client.Absent:
        return
    if observed.uid != row.node_uid or observed.is_unschedulable or row.is_being_ended():
        return
    if not is_of_driver(observed, row, now=clock()):
        if Quarantine.objects.in_force().filter(pk=row.pk, removed_at=None).update(removed_at=clock()):
            count_in_service([row.node_uid])
        return

    def guard() -> None:
        same = Quarantine.objects.in_force().filter(pk=row.pk).exists()
        if not same or row.is_being_ended():
            raise LostRace("The quarantine is being ended.")

    try:
        observed = cordon(row, connection, guard=guard)
    except (LostRace, NotWritten) as trouble:
        log.info("a cordon is not written again", node=row.node_name, reason=str(trouble))
        return
    if observed.is_unschedulable and observed.annotations.get(CORDONED_BY) == row.operation.mark:
        Quarantine.objects.in_force().filter(pk=row.pk).update(removed_at=None)
        AuditEntry.record(row.operation.mark, verb="operation.cordon-again", actor=ACTOR, reason=RESTORED, now=clock())


def is_of_driver(observed: NodeSeen, row: Quarantine, *, now: datetime) -> bool:
    """Returns whether the GPU stack probably removed the cordon: it changes the driver, or a driver pod started."""
    if observed.labels.get(UPGRADE_STATE, "") not in NOT_AT_WORK:
        return True
    since = max(row.placed_at or row.wanted_since, now - RECENT)
    return Pod.objects.filter(node__uid=row.node_uid, operand=DRIVER, created_at__gt=since).exists()
