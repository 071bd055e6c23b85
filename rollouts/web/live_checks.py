"""The panel of a draft's page on which its cluster itself is asked what would bar the start."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST

from edges.parts import part
from edges.requests import PersonRequest, answered
from people.rights import NotAllowed, Permission, require
from rollouts.models import Plan
from rollouts.preflight.live.reading import live_on_page, why_no_live_check, why_no_live_check_by
from rollouts.steering.live_checking import ask
from rollouts.steering.refusals import Refusal
from rollouts.web.loading import plan_for


def panel(request: PersonRequest, plan: Plan) -> dict[str, Any]:
    """Two queries."""
    shown = live_on_page(plan)
    return {
        "plan": plan,
        "live": shown,
        "is_live_shown": shown is not None or not why_no_live_check(plan),
        "why_no_live_check": why_no_live_check_by(request.user, plan),
    }


@part
def panel_part(request: PersonRequest, plan_id: int) -> HttpResponse:
    return render(request, "rollouts/_live_checks.html", panel(request, plan_for(request.user, plan_id)))


@require_POST
def check(request: PersonRequest, plan_id: int) -> HttpResponse:
    plan = plan_for(request.user, plan_id)
    with answered(
        request, (NotAllowed, Refusal), done="Asked: what the cluster says stands under “Asked of the cluster”."
    ):
        require(request.user, Permission.DRAFT, cluster_id=plan.cluster_id, where=f"cluster {plan.cluster.name}")
        ask(plan, actor=request.user, now=timezone.now())
    return redirect("plan", plan_id=plan_id)
