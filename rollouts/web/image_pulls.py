from typing import Any

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST

from edges.kept_input import BadForm, cleaned_input
from edges.parts import part_response
from edges.reason_form import reason_of
from edges.requests import PersonRequest, report_act
from people.rights import NotAllowed, Permission, require, scope_of
from rollouts.commands.image_pulls import MOST_EACH, ask, cancel
from rollouts.commands.refusals import Refusal
from rollouts.image_pulls.latest_pulls import newest_pull, why_no_pull, why_no_pull_by
from rollouts.models import ImagePull, Plan
from rollouts.web.command_forms import PullForm
from rollouts.web.kept_input import kept_if_refused
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
        "may_cancel_pull": scope_of(request.user, Permission.STOP).covers_cluster(plan.cluster_id),
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


@require_POST
def call_off(request: PersonRequest, pull_id: int) -> HttpResponse:
    row = get_object_or_404(ImagePull.objects.visible_to(request.user).select_related("plan__cluster"), pk=pull_id)
    cluster = row.plan.cluster
    with report_act(request, REFUSALS, done="Image pull cancelled. Its Jobs are being deleted.", ends_form=True):
        require(request.user, Permission.STOP, cluster_id=cluster.pk, where=f"cluster {cluster.name}")
        cancel(row, actor=request.user, reason=reason_of(request), now=timezone.now())
    return redirect("plan", plan_id=row.plan_id)
