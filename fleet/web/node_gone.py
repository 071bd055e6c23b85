"""The page of a node that left its cluster: when, what it was, and what happened to it."""

from django.http import Http404, HttpResponse
from django.shortcuts import render

from fleet.models import GoneNode, Node, NodeEvent
from people.web.requests import PersonRequest

LINES = 200


def gone(request: PersonRequest, node_id: int, *, template: str) -> HttpResponse:
    """:raises Http404: where there never was one, or nobody remembers, or the person may not see it"""
    row = GoneNode.objects.visible_to(request.user).select_related("cluster").filter(node_id=node_id).first()
    if row is None:
        raise Http404
    found = {
        "place": "fleet",
        "gone": row,
        "again": Node.objects.visible_to(request.user).filter(cluster=row.cluster_id, name=row.name).first(),
        "events": NodeEvent.objects.filter(cluster=row.cluster_id, node_uid=row.uid)[:LINES],
    }
    return render(request, template, found)
