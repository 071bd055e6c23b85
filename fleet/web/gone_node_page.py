"""The page of a node that left its cluster: when, and what it was. What happened to it its timeline says."""

from django.http import Http404, HttpResponse
from django.shortcuts import render

from edges.requests import PersonRequest
from fleet.queries import node_gone


def gone(request: PersonRequest, node_id: int, *, template: str) -> HttpResponse:
    """:raises Http404: where there never was one, or nobody remembers, or the person may not see it"""
    found = node_gone(node_id, user=request.user)
    if found is None:
        raise Http404
    seen = {"gone": found.row, "again": found.again}
    return render(request, template, seen)
