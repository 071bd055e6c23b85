"""Writing a plan down: the object, the version, the stages. What is wrong is said beside the field."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone

from fleet.models import DriverObject, Pool
from people.rights import Deed, NotAllowed, reach, require
from rollouts.lifecycle import PlanState
from rollouts.models import Plan
from rollouts.steering import drafting
from rollouts.steering.refusals import BadPlan, Refusal
from rollouts.web.draft_form import DraftForm, StageRow, gate_choices
from rollouts.web.loading import plan_for


def new(request: HttpRequest) -> HttpResponse:
    choices = _objects(request)
    asked = request.POST.get("object") or request.GET.get("object") or ""
    if not asked and len(choices) == 1:
        asked = str(choices[0].pk)
    if not asked.isdecimal():
        return render(request, "rollouts/draft.html", {"place": "plans", "choices": choices})
    chosen = get_object_or_404(
        DriverObject.objects.select_related("cluster"), pk=int(asked), pk__in=[c.pk for c in choices]
    )
    if request.method != "POST":
        form = DraftForm.suggested(drafting.suggest_stages(chosen))
        return _form(request, form, chosen=chosen, choices=choices)
    form = DraftForm.read(request.POST)
    return _save(request, form, chosen, choices=choices)


def edit(request: HttpRequest, plan_id: int) -> HttpResponse:
    plan = plan_for(request.user, plan_id)
    if plan.state != PlanState.DRAFT:
        return redirect("plan", plan_id=plan.pk)
    chosen = DriverObject.objects.filter(cluster=plan.cluster_id, uid=plan.object_uid).select_related("cluster").first()
    if request.method != "POST":
        return _form(request, DraftForm.of(plan), chosen=chosen, plan=plan)
    return _save(request, DraftForm.read(request.POST), chosen, plan=plan)


def _save(
    request: HttpRequest, form: DraftForm, chosen: DriverObject | None, *, plan: Plan | None = None, choices=()
) -> HttpResponse:
    """Write it down, or show the form again with what is wrong."""
    cluster = plan.cluster if plan else chosen.cluster  # type: ignore[union-attr]
    try:
        require(request.user, Deed.DRAFT, cluster_id=cluster.pk, where=f"cluster {cluster.name}")
        stages = form.stages()
        written = {"title": form.title, "to_version": form.to_version, "stages": stages}
        if plan:
            changed = drafting.edit(
                plan, **written, expected_revision=form.revision, actor=request.user, now=timezone.now()
            )
        else:
            changed = drafting.draft(
                **written, cluster=cluster, driver_object=chosen, actor=request.user, now=timezone.now()
            )
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


def _form(request: HttpRequest, form: DraftForm, *, chosen, plan=None, choices=(), status: int = 200) -> HttpResponse:
    cluster = plan.cluster if plan else chosen.cluster
    context: dict[str, Any] = {
        "place": "plans",
        "form": form,
        "chosen": chosen,
        "subject": chosen or DriverObject(name=plan.object_name, kind=plan.object_kind, version=plan.from_version),
        "cluster": cluster,
        "plan": plan,
        "choices": choices,
        "pools": Pool.objects.visible_to(request.user).filter(cluster=cluster),
        "gates": gate_choices(),
        "blank": StageRow.blank(),
    }
    return render(request, "rollouts/draft.html", context, status=status)


def _objects(request: HttpRequest) -> list[DriverObject]:
    """The objects a plan can be written for, where one may draft."""
    there = reach(request.user, Deed.DRAFT)
    rows = DriverObject.objects.filter(kind="NVIDIADriver").select_related("cluster")
    return list(rows if there.everywhere else rows.filter(cluster__in=there.cluster_ids))
