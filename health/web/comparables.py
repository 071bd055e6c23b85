"""Comparing a node or a GPU with a healthy twin, beside its plots."""

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone

from edges.parts import part
from edges.requests import PersonRequest
from fleet.models import Gpu, Node
from health.inbox.comparable_gpus import gpu_twin_of
from health.inbox.comparable_nodes import twin_of


@part
def node_twin_part(request: PersonRequest, node_id: int) -> HttpResponse:
    row = get_object_or_404(Node.objects.visible_to(request.user), pk=node_id)
    twin = twin_of(row, request.user, now=timezone.now())
    return render(request, "health/node/_node_twin.html", {"name": row.name, "twin": twin})


@part
def gpu_twin_part(request: PersonRequest, node_id: int, index: int) -> HttpResponse:
    row = get_object_or_404(Gpu.objects.visible_to(request.user).at(node_id, index))
    twin = gpu_twin_of(row, request.user, now=timezone.now())
    if twin.gpu is not None and twin.gpu.node_id == row.node_id:
        name, other = f"GPU {row.index}", f"GPU {twin.gpu.index}"
    else:
        name, other = str(row), str(twin.gpu or "")
    return render(request, "health/node/_gpu_twin.html", {"name": name, "other": other, "twin": twin})
