"""Passing a gate over, and saying that one has looked at it."""

from datetime import timedelta

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.views.decorators.http import require_POST

from edges.digits import whole
from edges.requests import PersonRequest, answered, reason
from people.rights import NotAllowed, Permission, require
from rollouts.models import BreakGlass
from rollouts.steering.breaking_glass import acknowledge, break_glass
from rollouts.steering.refusals import Refusal
from rollouts.web.loading import stage_for
from rollouts.web.written import kept_if_refused
from wording.instants import moment

REFUSALS = (NotAllowed, Refusal)


@require_POST
def break_it(request: PersonRequest, stage_id: int, gate: str) -> HttpResponse:
    stage, asked = stage_for(request.user, stage_id), request.POST
    with answered(request, REFUSALS), kept_if_refused(request, stage.plan, "glass", REFUSALS):
        glass = break_glass(
            stage,
            gate,
            actor=request.user,
            because=reason(request),
            confirm=asked.get("confirm", "")[:200],
            valid_for=timedelta(hours=min(whole(asked.get("hours", "")) or 0, 1000)),
            now=timezone.now(),
        )
        counts = f"It counts again from {moment(glass.until, now=glass.at)} on"
        messages.success(request, f"Passed over. {counts}, and this is shown until somebody else has looked at it.")
    return redirect("plan", plan_id=stage.plan_id)


@require_POST
def seen(request: PersonRequest, glass_id: int) -> HttpResponse:
    rows = BreakGlass.objects.visible_to(request.user).select_related("stage__plan__cluster")
    glass = get_object_or_404(rows, pk=glass_id)
    plan = glass.stage.plan
    with answered(request, REFUSALS, done=f"It is kept that you have looked at what {glass.by} passed over."):
        require(request.user, Permission.STOP, cluster_id=plan.cluster_id, where=f"cluster {plan.cluster.name}")
        acknowledge(glass, actor=request.user, now=timezone.now())
    return redirect("plan", plan_id=plan.pk)
