from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST

from edges.parts import part_response
from edges.requests import PersonRequest, report_act
from people.rights import NotAllowed, require
from rollouts.commands.live_checks import ask
from rollouts.commands.refusals import Refusal
from rollouts.models import Plan
from rollouts.preflight.live_checks.latest import live_on_page, may_ask_live, why_no_live_check, why_no_live_check_by
from rollouts.web.visible_objects import plan_for, stage_for


def panel(request: PersonRequest, plan: Plan) -> dict[str, Any]:
    """Returns the panel with two queries."""
    shown = live_on_page(plan)
    return {
        "plan": plan,
        "live": shown,
        "is_live_shown": shown is not None or not why_no_live_check(plan),
        "why_no_live_check": why_no_live_check_by(request.user, plan),
    }


@part_response
def panel_part(request: PersonRequest, plan_id: int) -> HttpResponse:
    return render(request, "rollouts/plan/_live_checks.html", panel(request, plan_for(request.user, plan_id)))


@require_POST
def check(request: PersonRequest, plan_id: int) -> HttpResponse:
    _request_check(request, plan_for(request.user, plan_id))
    return redirect("plan", plan_id=plan_id)


@require_POST
def check_of_stage(request: PersonRequest, stage_id: int) -> HttpResponse:
    _request_check(request, stage_for(request.user, stage_id).plan)
    return redirect("approval", stage_id=stage_id)


def _request_check(request: PersonRequest, plan: Plan) -> None:
    done = "Check requested. “Asked of the cluster” shows the answers."
    with report_act(request, (NotAllowed, Refusal), done=done):
        where = f"cluster {plan.cluster.name}"
        require(request.user, may_ask_live(plan), cluster_id=plan.cluster_id, where=where)
        ask(plan, actor=request.user, now=timezone.now())
