"""The page of all operations and quarantined nodes."""

from typing import Any

from django.db.models import Count, Prefetch, Q
from django.http import HttpResponse
from django.shortcuts import render

from edges.parts import part_response
from edges.requests import PersonRequest
from operations.kinds import title_of
from operations.lifecycle import NodeProgress
from operations.models import Operation, OperationNode, Quarantine

SHOWN = 50
NAMED = 3  # nodes of an operation


def operations(request: PersonRequest) -> HttpResponse:
    return render(request, "operations/list.html", _context(request))


@part_response
def operations_part(request: PersonRequest) -> HttpResponse:
    return render(request, "operations/_list.html", _context(request))


def _context(request: PersonRequest) -> dict[str, Any]:
    visible = Operation.objects.visible_to(request.user).select_related("cluster")
    counted = visible.annotate(
        total=Count("nodes"),
        done=Count("nodes", filter=Q(nodes__state=NodeProgress.DONE)),
        failed=Count("nodes", filter=Q(nodes__state=NodeProgress.FAILED)),
    ).order_by("-pk")
    named = Prefetch("nodes", OperationNode.objects.order_by("node_name")[:NAMED], to_attr="named")
    quarantines = Quarantine.objects.visible_to(request.user).in_force().select_related("cluster", "operation")
    return {
        "operations": [(row, title_of(row.kind), _names_of(row)) for row in counted.prefetch_related(named)[:SHOWN]],
        "most": SHOWN,
        "quarantines": quarantines.order_by("-wanted_since")[:SHOWN],
        "quarantined": quarantines.count(),
    }


def _names_of(row: Any) -> str:
    """Returns "gpu-1, gpu-2, gpu-3 and 5 more". `row` has its number of nodes and the first of them."""
    more = row.total - len(row.named)
    shown = ", ".join(node.node_name for node in row.named)
    return f"{shown} and {more} more" if more else shown
