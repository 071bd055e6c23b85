from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render

from edges.parts import part_response
from edges.requests import PersonRequest
from notifications.models import DeliveryState
from notifications.queries import traffic_calls
from rollouts.models import Plan

SHOWN = 10  # calls; more are in REST


@part_response
def traffic_part(request: PersonRequest, plan_id: int) -> HttpResponse:
    """Renders the calls of the traffic hook for a plan; nothing if there are none."""
    plan = get_object_or_404(Plan.objects.visible_to(request.user), pk=plan_id)
    rows = list(traffic_calls(plan)[:SHOWN])
    waits = any(row.state == DeliveryState.WAITING for row in rows)
    return render(request, "notifications/_traffic.html", {"plan": plan, "calls": rows, "waits": waits})
