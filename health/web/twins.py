"""Comparing a node with a healthy twin, beside its plots."""

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone

from edges.parts import part
from edges.requests import PersonRequest
from fleet.models import Node
from health.inbox.twins import twin_of


@part
def node_twin_part(request: PersonRequest, node_id: int) -> HttpResponse:
    row = get_object_or_404(Node.objects.visible_to(request.user), pk=node_id)
    twin = twin_of(row, request.user, now=timezone.now())
    return render(request, "health/_node_twin.html", {"node": row, "twin": twin})
