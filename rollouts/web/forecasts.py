from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone

from edges.parts import part_response
from edges.requests import PersonRequest
from rollouts.commands.preview import forecast_on_page
from rollouts.lifecycle import PlanState
from rollouts.web.visible_objects import plan_for


@part_response
def forecast_part(request: PersonRequest, plan_id: int) -> HttpResponse:
    """Renders the forecast of a started plan. A draft shows its own with its preview."""
    plan = plan_for(request.user, plan_id)
    shown = None if plan.state == PlanState.DRAFT else forecast_on_page(plan, now=timezone.now())
    return render(request, "rollouts/plan/_forecast.html", {"plan": plan, "shown": shown})
