"""The disruption ledger of a cluster: budgets, unavailable nodes, and changing the budgets."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST

from edges.digits import whole_number
from edges.fields import Reason
from edges.kept_input import SAY_WHY, BadForm, cleaned_input, kept_if_refused, pop_kept_input
from edges.parts import part_response
from edges.requests import PersonRequest, report_act
from fleet.freshness.cluster import load_cluster_freshness
from fleet.models import Cluster, Pool
from operations.failure_domains import DomainKind
from operations.models import Disruption
from people.rights import NotAllowed, require, why_not
from rollouts.commands.domain_budgets import EACH, MAY, budgets_of, kind_named, set_budget
from rollouts.commands.refusals import Refusal
from rollouts.models import Plan
from rollouts.models.plan import plan_of_mark


class BudgetForm(forms.Form):
    kind = forms.CharField(required=False)
    max_unavailable = forms.CharField(required=False)
    label = forms.CharField(required=False)
    reason = Reason(error_messages={"required": SAY_WHY})

    def clean_kind(self) -> DomainKind:
        try:
            return kind_named(self.cleaned_data["kind"])
        except Refusal as refusal:
            raise forms.ValidationError(str(refusal)) from refusal

    def clean_max_unavailable(self) -> int | None:
        """Returns the number; None for any number."""
        written = self.cleaned_data["max_unavailable"]
        most = whole_number(written)
        if written and most is None:
            raise forms.ValidationError(f"“{written[:20]}” is not a number. Leave the field empty for no limit.")
        return most


SHOWN = 200  # disruptions; more are in REST
PAST = 20
REFUSALS = (BadForm, NotAllowed, Refusal)
WRITTEN = ("kind", "max_unavailable", "label", "reason")


def ledgers(request: PersonRequest) -> HttpResponse:
    """Redirects to the first cluster's ledger, which links to the others."""
    first = Cluster.objects.visible_to(request.user).order_by("name").first()
    if first is None:
        return render(request, "rollouts/ledger/empty.html")
    return redirect("ledger", cluster_id=first.pk)


def ledger(request: PersonRequest, cluster_id: int) -> HttpResponse:
    context = _context(request, cluster_id)
    clusters = Cluster.objects.visible_to(request.user).order_by("name")
    return render(
        request,
        "rollouts/ledger/page.html",
        context | {"clusters": clusters, "written": pop_kept_input(request, _input_key(cluster_id))},
    )


@part_response
def ledger_part(request: PersonRequest, cluster_id: int) -> HttpResponse:
    return render(request, "rollouts/ledger/_body.html", _context(request, cluster_id))


@require_POST
def budget(request: PersonRequest, cluster_id: int) -> HttpResponse:
    cluster = get_object_or_404(Cluster.objects.visible_to(request.user), pk=cluster_id)
    kept = kept_if_refused(request, _input_key(cluster.pk), *WRITTEN, refusals=REFUSALS, verb="budget")
    with report_act(request, REFUSALS), kept:
        require(request.user, MAY, cluster_id=cluster.pk, where=f"cluster {cluster.name}")
        given = cleaned_input(BudgetForm(request.POST))
        kind, most = given.pop("kind"), given.pop("max_unavailable")
        said = set_budget(cluster, kind, most, **given, actor=request.user.username, now=timezone.now())
        messages.success(request, said)
    return redirect("ledger", cluster_id=cluster.pk)


def _input_key(cluster_id: int) -> str:
    return f"budgets-of-{cluster_id}"


def _context(request: PersonRequest, cluster_id: int) -> dict:
    cluster = get_object_or_404(Cluster.objects.visible_to(request.user), pk=cluster_id)
    lines = Disruption.objects.visible_to(request.user).filter(cluster=cluster)
    disruptions = lines.in_force().order_by("taken_at", "pk")
    return {
        "cluster": cluster,
        "observation": load_cluster_freshness(cluster, now=timezone.now()).observation,
        "budgets": [(one, EACH[one.kind]) for one in budgets_of(cluster)],
        "pools": Pool.objects.visible_to(request.user).filter(cluster=cluster).order_by("name"),
        "disruptions": _entries_with_plans(disruptions[:SHOWN]),
        "more": max(0, disruptions.count() - SHOWN),
        "past": _entries_with_plans(lines.filter(ended_at__isnull=False).order_by("-ended_at", "-pk")[:PAST]),
        "why_not": why_not(request.user, MAY, cluster_id=cluster.pk, where=f"cluster {cluster.name}"),
    }


def _entries_with_plans(disruptions: QuerySet[Disruption]) -> list[tuple[Disruption, Plan | None]]:
    """Returns each entry with the plan that owns it, if one does. Two queries."""
    rows = list(disruptions)
    ids = {row.pk: plan_of_mark(row.taken_by) for row in rows}
    plans = Plan.objects.in_bulk({plan_id for plan_id in ids.values() if plan_id})
    return [(row, plans.get(ids[row.pk] or 0)) for row in rows]
