from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST

from edges.kept_input import BadForm, cleaned_input
from edges.parts import part_response
from edges.requests import PersonRequest, report_act
from people.rights import NotAllowed, Permission, require
from rollouts.commands.refusals import Refusal
from rollouts.commands.rehearsals import ask, why_no_rehearsal_by
from rollouts.lifecycle import PlanState
from rollouts.models import Plan
from rollouts.rehearsal.faults import FAULTS, MOST_SEED
from rollouts.web.command_forms import RehearsalForm
from rollouts.web.visible_objects import plan_for

SHOWN = 3


def panel(request: PersonRequest, plan: Plan) -> dict[str, Any]:
    """Returns the panel of a draft with three queries; nothing for a plan that has started."""
    if plan.state != PlanState.DRAFT:
        return {"plan": plan, "is_rehearsal_shown": False}
    rows = list(plan.rehearsals.all()[:SHOWN])
    return {
        "plan": plan,
        "is_rehearsal_shown": True,
        "rehearsals": [(row, FAULTS[row.fault].title if row.fault in FAULTS else row.fault) for row in rows],
        "faults": FAULTS.values(),
        "most_seed": MOST_SEED,
        "why_no_rehearsal": why_no_rehearsal_by(request.user, plan),
    }


@part_response
def panel_part(request: PersonRequest, plan_id: int) -> HttpResponse:
    return render(request, "rollouts/plan/_rehearsals.html", panel(request, plan_for(request.user, plan_id)))


@require_POST
def rehearse(request: PersonRequest, plan_id: int) -> HttpResponse:
    plan = plan_for(request.user, plan_id)
    done = "Rehearsal requested. The outcome appears under “Rehearse”."
    with report_act(request, (BadForm, NotAllowed, Refusal), done=done):
        require(request.user, Permission.DRAFT, cluster_id=plan.cluster_id, where=f"cluster {plan.cluster.name}")
        ask(plan, actor=request.user, **cleaned_input(RehearsalForm(request.POST)), now=timezone.now())
    return redirect("plan", plan_id=plan_id)
