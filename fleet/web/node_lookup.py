"""The node of a request, loaded once, so that page and parts show the same moment."""

from django.http import HttpRequest
from django.shortcuts import get_object_or_404

from fleet.models import Node


def node_for(request: HttpRequest, node_id: int) -> Node:
    """Returns the node with cluster and observer. One query the first time.

    :raises Http404: when it is invisible
    """
    row: Node | None = getattr(request, "node_row", None)
    if row is None or row.pk != node_id:
        seen = Node.objects.visible_to(request.user).select_related("cluster__observer")
        row = get_object_or_404(seen, pk=node_id)
        request.node_row = row  # type: ignore[attr-defined]
    return row
