"""The ledger of disruption of a cluster: what its domains may have out, who is out, and changing the budgets."""

from __future__ import annotations

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST

from edges.digits import whole
from edges.parts import part
from edges.requests import PersonRequest, answered
from edges.written import kept_if_refused, take
from fleet.freshness.cluster import heard_of
from fleet.models import Cluster, Pool
from people.rights import NotAllowed, require, why_not
from rollouts.models import Disruption
from rollouts.steering.budgeting import EACH, LONGEST_LABEL, MAY, BadBudget, budgets_of, kind_named, set_budget
from rollouts.steering.refusals import Refusal
from rollouts.web.written import because_of

SHOWN = 200  # disruptions; more are in REST
PAST = 20
REFUSALS = (NotAllowed, Refusal)
WRITTEN = ("kind", "max_unavailable", "label", "because")


def ledger(request: PersonRequest, cluster_id: int) -> HttpResponse:
    context = _context(request, cluster_id)
    return render(request, "rollouts/ledger.html", context | {"written": take(request, _about(cluster_id))})


@part
def ledger_part(request: PersonRequest, cluster_id: int) -> HttpResponse:
    return render(request, "rollouts/_ledger.html", _context(request, cluster_id))


@require_POST
def budget(request: PersonRequest, cluster_id: int) -> HttpResponse:
    """Say what each zone, rack or NVLink domain may have out from now on."""
    cluster = get_object_or_404(Cluster.objects.visible_to(request.user), pk=cluster_id)
    written = request.POST.get("max_unavailable", "").strip()[:20]
    with answered(request, REFUSALS), kept_if_refused(request, _about(cluster.pk), *WRITTEN, refusals=REFUSALS):
        require(request.user, MAY, cluster_id=cluster.pk, where=f"cluster {cluster.name}")
        kind = kind_named(request.POST.get("kind", "")[:32])
        most = whole(written) if written else None
        if written and most is None:
            raise BadBudget(("max_unavailable", f"“{written}” is no number. Leave it empty for no limit."))
        label = request.POST.get("label", "").strip()[: LONGEST_LABEL + 1]
        because, actor = because_of(request), request.user.username
        said = set_budget(cluster, kind, most, label=label, actor=actor, because=because, now=timezone.now())
        messages.success(request, said)
    return redirect("ledger", cluster_id=cluster.pk)


def _about(cluster_id: int) -> str:
    return f"budgets-of-{cluster_id}"


def _context(request: PersonRequest, cluster_id: int) -> dict:
    cluster = get_object_or_404(Cluster.objects.visible_to(request.user), pk=cluster_id)
    lines = Disruption.objects.visible_to(request.user).filter(cluster=cluster).select_related("plan")
    disruptions = lines.in_force().order_by("taken_at", "pk")
    return {
        "place": "freezes",
        "cluster": cluster,
        "sight": heard_of(cluster, now=timezone.now()).sight,
        "budgets": [(one, EACH[one.kind]) for one in budgets_of(cluster)],
        "pools": Pool.objects.visible_to(request.user).filter(cluster=cluster).order_by("name"),
        "disruptions": _first(disruptions),
        "more": max(0, disruptions.count() - SHOWN),
        "past": list(lines.filter(ended_at__isnull=False).order_by("-ended_at", "-pk")[:PAST]),
        "why_not": why_not(request.user, MAY, cluster_id=cluster.pk, where=f"cluster {cluster.name}"),
    }


def _first(disruptions: QuerySet[Disruption]) -> list[Disruption]:
    return list(disruptions[:SHOWN])
