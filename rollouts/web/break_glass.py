from datetime import timedelta

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.views.decorators.http import require_POST

from edges.digits import whole_number
from edges.fields import Reason
from edges.kept_input import BadForm, cleaned_input
from edges.requests import PersonRequest, report_act
from people.rights import NotAllowed, Permission, require
from people.sign_in.step_up import NotConfirmed, require_recent_sign_in
from rollouts.commands.break_glass import acknowledge, override_gate
from rollouts.commands.refusals import Refusal
from rollouts.models import GateOverride
from rollouts.web.command_forms import kept_if_refused
from rollouts.web.visible_objects import stage_for
from wording.instants import moment

REFUSALS = (BadForm, NotAllowed, Refusal)


class OverrideForm(forms.Form):
    reason = Reason(required=False)
    hours = forms.CharField(required=False)
    confirm = forms.CharField(required=False)

    def clean_hours(self) -> timedelta:
        """Returns the duration; the command checks its maximum."""
        return timedelta(hours=min(whole_number(self.cleaned_data["hours"]) or 0, 1000))


@require_POST
def break_it(request: PersonRequest, stage_id: int, gate: str) -> HttpResponse:
    stage = stage_for(request.user, stage_id)
    with report_act(request, REFUSALS), kept_if_refused(request, stage.plan, "override", (*REFUSALS, NotConfirmed)):
        require_recent_sign_in(request)
        given = cleaned_input(OverrideForm(request.POST))
        given["valid_for"] = given.pop("hours")
        override = override_gate(stage, gate, actor=request.user, **given, now=timezone.now())
        counts = f"The gate counts again from {moment(override.until, now=override.at)} on"
        messages.success(request, f"Overridden. {counts}. This is shown until a second person acknowledges it.")
    return redirect("plan", plan_id=stage.plan_id)


@require_POST
def acknowledge_override(request: PersonRequest, override_id: int) -> HttpResponse:
    rows = GateOverride.objects.visible_to(request.user).select_related("stage__plan__cluster")
    override = get_object_or_404(rows, pk=override_id)
    plan = override.stage.plan
    with report_act(request, REFUSALS, done=f"Acknowledged: the override by {override.by}."):
        require(request.user, Permission.STOP, cluster_id=plan.cluster_id, where=f"cluster {plan.cluster.name}")
        acknowledge(override, actor=request.user, now=timezone.now())
    return redirect("plan", plan_id=plan.pk)
