"""The panel of gates that are evaluated again on the record of a plan, after its page."""

from dataclasses import fields
from typing import Any

from django import forms
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST

from edges.kept_input import BadForm, cleaned_input
from edges.parts import part_response
from edges.requests import PersonRequest, report_act
from fleet.models import Pool
from people.models import User
from people.rights import NotAllowed, Permission, require, why_not
from rollouts.backtest.review import MOST_PAST, REVIEWED, review_plan, try_gate, try_gate_on_past
from rollouts.commands.added_gates import draft_with_gate, usual_options
from rollouts.commands.refusals import Refusal
from rollouts.gates import GATES
from rollouts.gates.base import Gate, When
from rollouts.gates.options import LONGEST_TEXT, BadGate, kinds_of, read_gates, wire_name, write_options
from rollouts.gates.soak import Soak
from rollouts.models import Plan, Target
from rollouts.web.stage_form import NumberField, TextField
from rollouts.web.visible_objects import plan_for

MOST_POOLS = 5  # buttons beside a gate


class GateForm(forms.Form):
    gate = forms.ChoiceField(
        choices=[(key, gate.title) for key, gate in GATES.items()],
        error_messages={"required": "This names no gate.", "invalid_choice": "There is no such gate."},
    )


class TrialForm(forms.Form):
    """The options of one gate, with its defaults. Blank is the gate's own default."""

    def __init__(self, kind: type[Gate], data: QueryDict | None = None) -> None:
        (usual,) = read_gates({kind.key: usual_options(kind.key)})
        initial = {
            name: f"{value:g}" if isinstance(value, float) else value for name, value in write_options(usual).items()
        }
        super().__init__(data, initial=initial, prefix="option")
        of_all = {field.name for field in fields(Gate)}
        for name, its in kinds_of(kind).items():
            if name not in of_all:
                self.fields[wire_name(name, its)] = _field_of(its, wire_name(name, its))

    def options(self) -> dict[str, Any]:
        return {name: value for name, value in cleaned_input(self).items() if value not in (None, "")}


def _field_of(kind: type, label: str) -> forms.Field:
    if kind is bool:
        return forms.BooleanField(required=False, label=label)
    field = TextField() if kind in LONGEST_TEXT else NumberField(is_whole=kind is int)
    field.label = label
    return field


def pools_of(plan: Plan, user: User) -> list[Pool]:
    """Returns the visible pools with a node of the plan, by name. One query."""
    nodes = Target.objects.filter(stage__plan=plan).values("node_uid")
    pools = Pool.objects.visible_to(user).filter(cluster=plan.cluster_id, nodes__uid__in=nodes)
    return list(pools.distinct().order_by("name")[:MOST_POOLS])


def is_reviewed(plan: Plan) -> bool:
    return plan.state in REVIEWED


@part_response
def panel_part(request: PersonRequest, plan_id: int) -> HttpResponse:
    plan = plan_for(request.user, plan_id)
    if not is_reviewed(plan):
        return render(request, "rollouts/plan/_gate_review_later.html", {"plan": plan})
    where = f"cluster {plan.cluster.name}"
    context = {
        "plan": plan,
        "review": review_plan(plan, usual_options),
        "pools": pools_of(plan, request.user),
        "why_no_draft": why_not(request.user, Permission.DRAFT, cluster_id=plan.cluster_id, where=where),
    }
    return render(request, "rollouts/plan/_gate_review.html", context | _trial(request, plan))


def _trial(request: PersonRequest, plan: Plan) -> dict[str, Any]:
    """Returns the form of a gate and its options, and the result of what was sent."""
    tried = [gate for gate in GATES.values() if gate.when is When.THROUGH and gate.key != Soak.key]
    kind = next((gate for gate in tried if gate.key == request.GET.get("gate")), tried[0])
    form = TrialForm(kind, request.GET if "run" in request.GET else None)
    shown: dict[str, Any] = {"tried_gates": tried, "tried": kind, "trial_form": form}
    if not form.is_bound:
        return shown
    try:
        (gate,) = read_gates({kind.key: form.options()})
    except (BadForm, BadGate) as refusal:
        return shown | {"trial_problem": str(refusal)}
    shown |= {"trial": try_gate(plan, gate), "is_of_past": "past" in request.GET}
    if shown["is_of_past"]:
        visible = Plan.objects.visible_to(request.user)
        shown["past_trials"] = try_gate_on_past(visible, plan, gate, most=MOST_PAST)
    return shown


@require_POST
def add_gate(request: PersonRequest, plan_id: int) -> HttpResponse:
    plan = made = plan_for(request.user, plan_id)
    with report_act(request, (BadForm, NotAllowed, Refusal), done="Draft created. Its stages have the gate."):
        require(request.user, Permission.DRAFT, cluster_id=plan.cluster_id, where=f"cluster {plan.cluster.name}")
        gate = cleaned_input(GateForm(request.POST))["gate"]
        made = draft_with_gate(plan, gate=gate, options=usual_options(gate), actor=request.user, now=timezone.now())
    return redirect("plan", plan_id=made.pk)
