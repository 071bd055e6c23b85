"""The draft page: object, version, stages. Problems are shown at their fields."""

from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from edges.digits import whole_number
from edges.requests import PersonRequest
from fleet.models import Cluster, DriverObject, Pool
from people.rights import NotAllowed, Permission, Scope, require, scope_of
from rollouts.commands import plan_drafts
from rollouts.commands.draft_problems import problems
from rollouts.commands.refusals import BadPlan, Refusal
from rollouts.commands.stage_drafts import StageDraft
from rollouts.lifecycle import PlanState
from rollouts.models import Plan
from rollouts.queries.driver_nodes import changeable
from rollouts.web.draft_form import DraftForm
from rollouts.web.stage_form import advisable, gate_choices, indicator_choices, template_choices
from rollouts.web.visible_objects import plan_for

GONE = "The driver object is gone, or you may not change it. Choose another driver object and save again."


def new_draft(request: PersonRequest) -> HttpResponse:
    choices = _objects(request)
    asked = request.POST.get("object") or request.GET.get("object") or ""
    if not asked and len(choices) == 1 and request.method != "POST":
        asked = str(choices[0].pk)
    pk = whole_number(asked)
    chosen = next((each for each in choices if each.pk == pk), None)
    if chosen is None and pk is not None and (request.method != "POST" or _may_draft(request).nowhere):
        raise Http404
    if request.method == "POST":
        form = DraftForm(request.POST)
        if chosen is None:
            form.refuse([{"field": "", "sentence": GONE}])
            return _form(request, form, chosen=None, choices=choices, status=409)
        return _save(request, form, chosen, choices=choices)
    if chosen is None:
        return render(request, "rollouts/draft/page.html", {"choices": choices})
    form = DraftForm(stages=plan_drafts.suggest_stages(chosen))
    return _form(request, form, chosen=chosen, choices=choices)


def edit(request: PersonRequest, plan_id: int) -> HttpResponse:
    plan = plan_for(request.user, plan_id)
    if plan.state != PlanState.DRAFT and request.method != "POST":  # a change is refused, and stays on the page
        return redirect("plan", plan_id=plan.pk)
    chosen = DriverObject.objects.filter(cluster=plan.cluster_id, uid=plan.object_uid).select_related("cluster").first()
    if request.method != "POST":
        return _form(request, DraftForm.of(plan), chosen=chosen, plan=plan)
    return _save(request, DraftForm(request.POST), chosen, plan=plan)


def _save(
    request: PersonRequest, form: DraftForm, chosen: DriverObject | None, *, plan: Plan | None = None, choices=()
) -> HttpResponse:
    cluster = plan.cluster if plan else chosen.cluster  # type: ignore[union-attr]
    try:
        require(request.user, Permission.DRAFT, cluster_id=cluster.pk, where=f"cluster {cluster.name}")
        changed = _write(request, form, chosen, plan)
    except BadPlan as refusal:
        form.refuse(refusal.problems)
        return _form(request, form, chosen=chosen, plan=plan, choices=choices, status=400)
    except NotAllowed as refusal:
        form.refuse([{"field": "", "sentence": str(refusal)}])
        return _form(request, form, chosen=chosen, plan=plan, choices=choices, status=403)
    except Refusal as refusal:
        form.refuse([{"field": "", "sentence": str(refusal)}])
        return _form(request, form, chosen=chosen, plan=plan, choices=choices, status=409)
    return redirect("plan", plan_id=changed.pk)


def _write(request: PersonRequest, form: DraftForm, chosen: DriverObject | None, plan: Plan | None) -> Plan:
    stages = _stages_of_form(form, plan.cluster if plan else chosen.cluster)  # type: ignore[union-attr]
    given = {name: form.cleaned_data[name] for name in ("title", "to_version", "cordon_affected")}
    given |= {"stages": stages, "actor": request.user, "now": timezone.now()}
    if plan is not None:
        return plan_drafts.edit(plan, expected_revision=form.cleaned_data["revision"], **given)
    if chosen is None:
        raise Http404
    return plan_drafts.draft(cluster=chosen.cluster, driver_object=chosen, **given)


def _stages_of_form(form: DraftForm, cluster: Cluster) -> list[StageDraft]:
    """Returns the stages.

    :raises BadPlan: with every problem
    """
    try:
        return form.stages()
    except BadPlan as refusal:
        unread = [(each["field"], each["sentence"]) for each in refusal.problems]
        found = problems(cluster, form.version_as_read, form.stages_as_read())
        raise BadPlan(*unread, *form.besides(found)) from refusal


def _form(request: PersonRequest, form: DraftForm, *, chosen, plan=None, choices=(), status: int = 200) -> HttpResponse:
    """Renders the form. A new plan without an object asks for one first."""
    clusters = [chosen.cluster] if chosen else [plan.cluster] if plan else [each.cluster for each in choices]
    context: dict[str, Any] = {
        "form": form,
        "chosen": chosen,
        "subject": chosen or (plan and _object_at_draft(plan)),
        "cluster": clusters[0] if chosen or plan else None,
        "plan": plan,
        "choices": choices,
        "pools": Pool.objects.visible_to(request.user).filter(cluster__in=clusters).select_related("cluster"),
        "gates": gate_choices(),
        "advisable": advisable(),
        "indicators": indicator_choices(),
        "test_templates": template_choices(),
    }
    return render(request, "rollouts/draft/page.html", context, status=status)


def _object_at_draft(plan: Plan) -> DriverObject:
    return DriverObject(name=plan.object_name, kind=plan.object_kind, version=plan.from_version)


def _may_draft(request: PersonRequest) -> Scope:
    return scope_of(request.user, Permission.DRAFT)


def _objects(request: PersonRequest) -> list[DriverObject]:
    there = _may_draft(request)
    rows = DriverObject.objects.filter(changeable()).select_related("cluster").order_by("cluster__name", "kind", "name")
    return list(rows if there.everywhere else rows.filter(cluster__in=there.cluster_ids))
