"""The card with the checklist of a GPU pod."""

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone

from edges.parts import part_response
from edges.requests import PersonRequest
from fleet.models import Pod
from health.pod_checklist.reader import checklist_of_pod
from health.stack import ChecklistAnswer


@part_response
def pod_checklist_part(request: PersonRequest, pod_id: int) -> HttpResponse:
    pods = Pod.objects.visible_to(request.user).select_related("cluster__observer", "node")
    pod = get_object_or_404(pods, pk=pod_id)
    items, freshness = checklist_of_pod(pod, now=timezone.now())
    shown = {
        "pod": pod,
        "freshness": freshness,
        "checklist": items,
        "counts": [(answer, sum(item.answer is answer for item in items)) for answer in ChecklistAnswer],
    }
    return render(request, "health/pod/_checklist.html", shown)
