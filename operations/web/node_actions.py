"""The part of a node's page that quarantines, drains and releases it, and shows its last operations."""

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render

from edges.parts import part
from edges.requests import PersonRequest
from fleet.models import ClusterMode, Node
from operations.commands import TITLES, kind_of
from operations.lifecycle import NodeState
from operations.models import OperationNode, Quarantine
from people.rights import Permission, why_not

SHOWN = 5


@part
def node_part(request: PersonRequest, node_id: int) -> HttpResponse:
    node = get_object_or_404(Node.objects.visible_to(request.user).select_related("cluster"), pk=node_id)
    rows = OperationNode.objects.visible_to(request.user).filter(node_uid=node.uid)
    last = list(rows.select_related("operation").order_by("-pk")[:SHOWN])
    quarantine = Quarantine.objects.of_nodes([node.uid]).select_related("operation").first()
    cluster = node.cluster
    locked = why_not(request.user, Permission.RUN, cluster_id=cluster.pk, where=f"cluster {cluster.name}")
    if not locked and cluster.mode != ClusterMode.OPERATE:
        locked = f"Quarterdeck may not change {cluster.name}: its mode is {cluster.mode}."
    context = {
        "node": node,
        "quarantine": quarantine,
        "is_busy": any(
            row.state in (NodeState.PENDING, NodeState.RUNNING) and row.operation.is_in_progress for row in last
        ),
        "last": [(row, TITLES.get(kind_of(row.operation), "Operation")) for row in last],
        "why_not": locked,
    }
    return render(request, "operations/_node_actions.html", context)
