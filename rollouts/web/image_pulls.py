from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST

from edges.kept_input import BadForm, cleaned_input
from edges.parts import part_response
from edges.requests import PersonRequest, report_act
from people.rights import NotAllowed, Permission, require
from rollouts.commands.image_pulls import MOST_EACH, ask
from rollouts.commands.refusals import Refusal
from rollouts.models import Plan
from rollouts.queries.image_pulls import newest_pull, why_no_pull, why_no_pull_by
from rollouts.web.command_forms import PullForm, kept_if_refused
from rollouts.web.visible_objects import plan_for

REFUSALS = (BadForm, NotAllowed, Refusal)


def panel(request: PersonRequest, plan: Plan) -> dict[str, Any]:
    """Returns the panel with three queries."""
    shown = newest_pull(plan)
    return {
        "plan": plan,
        "pulled": shown,
        "is_pull_shown": shown is not None or not why_no_pull(plan),
        "is_of_another_version": shown is not None and shown.pull.to_version != plan.to_version,
        "why_no_pull": why_no_pull_by(request.user, plan),
        "most_each": MOST_EACH,
    }


@part_response
def panel_part(request: PersonRequest, plan_id: int) -> HttpResponse:
    return render(request, "rollouts/plan/_image_pulls.html", panel(request, plan_for(request.user, plan_id)))


@require_POST
def pull(request: PersonRequest, plan_id: int) -> HttpResponse:
    plan = plan_for(request.user, plan_id)
    asked_for = report_act(
        request, REFUSALS, done="Image pull requested. “Image pulled beforehand” shows the progress."
    )
    with asked_for, kept_if_refused(request, plan, "pull", REFUSALS):
        require(request.user, Permission.RUN, cluster_id=plan.cluster_id, where=f"cluster {plan.cluster.name}")
        ask(plan, actor=request.user, **cleaned_input(PullForm(request.POST)), now=timezone.now())
    return redirect("plan", plan_id=plan_id)
