"""The part of a node's page that quarantines, drains and releases it, and shows its last operations."""

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone

from edges.parts import part_response
from edges.requests import PersonRequest
from fleet.models import ClusterMode, Node
from fleet.web.node_lookup import node_for
from operations.external_owner import announced_work_of, external_owner_of
from operations.kinds import KINDS, title_of
from operations.lifecycle import NodeProgress
from operations.models import MaintenanceRequest, Operation, OperationNode, Quarantine
from operations.models.operation import MARK
from operations.steps import offers_on
from people.rights import Permission, why_not

SHOWN = 5


@part_response
def node_part(request: PersonRequest, node_id: int) -> HttpResponse:
    node = node_for(request, node_id)
    rows = OperationNode.objects.visible_to(request.user).filter(node_uid=node.uid)
    last = list(rows.select_related("operation").order_by("-pk")[:SHOWN])
    quarantine = Quarantine.objects.of_nodes([node.uid]).select_related("operation").first()
    cluster = node.cluster
    locked = why_not(request.user, Permission.RUN, cluster_id=cluster.pk, where=f"cluster {cluster.name}")
    if not locked and cluster.mode != ClusterMode.OPERATE:
        locked = f"Quarterdeck may not change {cluster.name}: its mode is {cluster.mode}."
    offered = {kind for kind, why in offers_on([node], KINDS.values())[node.uid].items() if not why}
    context = {
        "node": node,
        "asks_nvsentinel": "start-maintenance" in offered,
        "maintenance": MaintenanceRequest.objects.of_node(node.uid),
        "quarantine": quarantine,
        "holding": _holding(node),
        "external": external_owner_of(node, now=timezone.now()),
        "announced": announced_work_of(node),
        "is_busy": any(
            row.state in (NodeProgress.PENDING, NodeProgress.RUNNING) and row.operation.is_in_progress for row in last
        ),
        "last": [(row, title_of(row.operation.kind)) for row in last],
        "more_kinds": [kind for kind in KINDS.values() if kind.icon and kind.key in offered],
        "why_not": locked,
    }
    return render(request, "operations/_node_actions.html", context)


def _holding(node: Node) -> Operation | None:
    """Returns the operation that holds the node's driver. None: none does. One query if one may."""
    number = node.held_by.removeprefix(MARK) if node.held_by.startswith(MARK) else ""
    return Operation.objects.filter(cluster=node.cluster_id, pk=number).first() if number.isdecimal() else None
