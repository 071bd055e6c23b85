"""What is wrong now, the worst first, and what was lately."""

import json
from collections.abc import Iterable
from typing import Any

from django.core.paginator import Paginator
from django.db.models import Case, IntegerField, QuerySet, Value, When
from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone

from edges.parts import part
from edges.requests import PersonRequest
from fleet.models import Cluster, Finding, Observer, Severity
from fleet.web.trouble import Trouble, trouble_of

PER_PAGE = 50
SHOWN = 5  # on the page of the fleet
WORST_FIRST = Case(
    *(When(severity=severity, then=Value(rank)) for rank, severity in enumerate(Severity.values)),
    output_field=IntegerField(),
)


def findings(request: PersonRequest) -> HttpResponse:
    clusters = Cluster.objects.visible_to(request.user)
    batches = Observer.objects.filter(cluster__in=clusters).values_list("cluster", "batch")
    seq = json.dumps({f"cluster-{cluster}": batch for cluster, batch in batches})
    return render(request, "fleet/findings.html", {"place": "findings", "seq": seq, **_findings(request)})


@part
def findings_part(request: PersonRequest) -> HttpResponse:
    return render(request, "fleet/_findings.html", _findings(request))


@part
def findings_strip_part(request: PersonRequest) -> HttpResponse:
    """The first few, for the page of the fleet."""
    return render(request, "fleet/_findings_strip.html", strip(request))


def strip(request: PersonRequest) -> dict[str, Any]:
    """Half is kept for what is being confirmed: many that are open never hide what has just begun."""
    found, trouble = open_findings(request), trouble_of(request.user, now=timezone.now())
    waiting = list(confirming_findings(request)[: max(SHOWN // 2, SHOWN - trouble.open)])
    return {"findings": dated(found[: SHOWN - len(waiting)], trouble), "confirming": waiting, "trouble": trouble}


def confirming_findings(request: PersonRequest) -> QuerySet[Finding]:
    visible = Finding.objects.visible_to(request.user)
    return visible.confirming().select_related("cluster").order_by(WORST_FIRST, "since", "pk")


def open_findings(request: PersonRequest) -> QuerySet[Finding]:
    visible = Finding.objects.visible_to(request.user)
    return visible.open().select_related("cluster").order_by(WORST_FIRST, "-opened_at", "-pk")


def dated(findings: Iterable[Finding], trouble: Trouble) -> list[Finding]:
    """Each of a node whose cluster is not seen says when that was heard: nobody knows whether it is still so."""
    found = list(findings)
    for finding in found:
        finding.as_of = trouble.heard_at.get(finding.cluster_id) if finding.node_id else None  # type: ignore[attr-defined]
    return found


def _findings(request: PersonRequest) -> dict[str, Any]:
    over = Finding.objects.visible_to(request.user).filter(resolved_at__isnull=False).select_related("cluster")
    trouble = trouble_of(request.user, now=timezone.now())
    found = Paginator(open_findings(request), PER_PAGE).get_page(request.GET.get("page"))
    found.object_list = dated(found.object_list, trouble)
    return {
        "trouble": trouble,
        "confirming": confirming_findings(request)[:PER_PAGE],
        "open": found,
        "over": over.order_by("-resolved_at", "-pk")[:20],
    }
