"""Current findings, worst first, and recent ones, with the parts that other pages load."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import QuerySet
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone

from edges.parts import part_response
from edges.requests import PersonRequest
from fleet.models import Gpu, Pool
from fleet.queries import gpu_at
from fleet.web.node_lookup import node_for
from fleet.web.summary import line_for, lines_for
from health.inbox.finding_groups import FindingGroup, groups_of
from health.inbox.last_seen import dated
from health.inbox.queries import code_of, counts_of, titles
from health.lifecycle import FindingState
from health.models import Finding, RuleShadow
from health.models.finding import WORST_FIRST, FindingQuerySet
from health.rules.base import Severity
from health.sources.cluster_telemetry import standings_of
from health.sources.exported_metrics import exporting_of
from health.web.trouble import trouble_of

PER_PAGE = 50
SHOWN = 5  # on the page of the fleet, or of a pool
NO_DATES: Mapping[int, datetime | None] = {}  # the page header shows when a stale cluster was last observed


@part_response
def findings_strip_part(request: PersonRequest) -> HttpResponse:
    """Renders the first few findings for the fleet page."""
    return render(request, "health/fleet/_findings_strip.html", _strip_context(request))


@part_response
def criticals_part(request: PersonRequest) -> HttpResponse:
    """Renders the number of open critical findings for the menu, with one query."""
    number = open_findings(request).filter(severity=Severity.CRITICAL, state=FindingState.OPEN).count()
    return render(request, "health/layout/_criticals_count.html", {"number": number})


@part_response
def cluster_findings_part(request: PersonRequest, cluster_id: int) -> HttpResponse:
    now = timezone.now()
    line = line_for(request, cluster_id, now=now)
    row, freshness = line.cluster, line.freshness
    last_seen_at = {} if freshness.is_fresh else {row.pk: freshness.last_seen_at}
    first = open_findings(request).filter(cluster=row)[:PER_PAGE]
    waiting = confirming_findings(request).filter(cluster=row)[:PER_PAGE]
    found = _findings_by_state(dated([*first, *waiting], last_seen_at=last_seen_at, now=now))
    counts = counts_of(request.user, cluster=row)
    number = counts.open + counts.acknowledged
    cut = {
        "of": row.name,
        "most": PER_PAGE,
        "number": number if number > len(found["findings"]) else 0,
        "more_confirming": max(0, counts.confirming - len(found["confirming"])),
        "number_muted": counts.muted,
    }
    return render(request, "health/parts/_findings_of_one.html", found | cut)


@part_response
def cluster_trouble_part(request: PersonRequest, cluster_id: int) -> HttpResponse:
    """Renders the numbers of findings and faulty nodes for the head of a cluster's page."""
    now = timezone.now()
    line = line_for(request, cluster_id, now=now)
    trouble = trouble_of(request.user, counts_of(request.user, cluster=line.cluster), [line], now=now)
    return render(request, "health/cluster/_trouble.html", {"cluster": line.cluster, "trouble": trouble})


@part_response
def node_findings_part(request: PersonRequest, node_id: int) -> HttpResponse:
    row = node_for(request, node_id)
    every = Finding.objects.filter(node=row).notified().unresolved().select_related("cluster").worst_first()
    found = _findings_by_state(dated(every, last_seen_at=NO_DATES, now=timezone.now()))
    return render(request, "health/parts/_findings_of_one.html", found)


@part_response
def gpu_findings_part(request: PersonRequest, node_id: int, index: int) -> HttpResponse:
    """Renders the GPU's findings, and those of its node as a whole, which may affect it."""
    row = gpu_at(node_id, index, user=request.user)
    if row is None:
        raise Http404
    found = Finding.objects.select_related("cluster").around(row)
    own = dated([*found.open, *found.confirming, *found.muted], last_seen_at=NO_DATES, now=timezone.now())
    return render(request, "health/parts/_findings_of_one.html", _findings_by_state(own) | {"of_node": found.of_node})


def _findings_by_state(found: Iterable[Finding]) -> dict[str, list[Finding]]:
    """Groups findings by state and keeps their order."""
    shown: dict[str, list[Finding]] = {"findings": [], "confirming": [], "muted": []}
    kept = {FindingState.CONFIRMING.value: "confirming", FindingState.MUTED.value: "muted"}
    for one in found:
        shown[kept.get(one.state, "findings")].append(one)
    return shown


def gpu_of_finding(request: PersonRequest, finding_id: int) -> HttpResponse:
    """Redirects to the page of the finding's GPU, or to its node's if the GPU is unknown."""
    found = get_object_or_404(Finding.objects.visible_to(request.user).filter(node__isnull=False), pk=finding_id)
    index = found.gpu_among(dict(Gpu.objects.filter(node=found.node_id).values_list("index", "uuid")))
    return redirect("node", found.node_id) if index is None else redirect("gpu", found.node_id, index)


@part_response
def pool_findings_part(request: PersonRequest, pool_id: int) -> HttpResponse:
    row = get_object_or_404(Pool.objects.visible_to(request.user).select_related("cluster"), pk=pool_id)
    counts = counts_of(request.user, pool=row)
    found = Finding.objects.without_visible_cause(request.user).of_pool(row)
    first, now = list(found.open().select_related("node").unacknowledged_first()[:SHOWN]), timezone.now()
    standing = standings_of([row.cluster_id], now=now)[row.cluster_id]
    shown = {
        "pool": row,
        "number": counts.open + counts.acknowledged,
        "findings": dated(first, last_seen_at=NO_DATES, now=now),
        "confirming": counts.confirming,
        "muted": counts.muted,
        "is_silent": not standing.is_reporting and row.nodes.with_gpus().exists(),
        "exporting": exporting_of({row.cluster_id: standing}, row.nodes.all()).get(row.cluster_id)
        if standing.is_reporting and not first
        else None,
    }
    return render(request, "health/pool/_findings.html", shown)


class StripLine(NamedTuple):
    finding: Finding
    group: FindingGroup  # group that the row represents
    title: str  # of its rule
    code: str


def _strip_context(request: PersonRequest) -> dict[str, Any]:
    """Returns the context of the strip. Unacknowledged findings come first, and a group counts as one.

    Pending findings get half of the room left by open critical ones, and at least one line. So many open findings never
    hide a new one.
    """
    now, counts = timezone.now(), counts_of(request.user)
    trouble = trouble_of(request.user, counts, lines_for(request, now=now), now=now)
    told = groups_of(open_findings(request).unacknowledged_first()) if trouble.open else []
    critical = min(SHOWN, sum(group.is_open_critical for group in told))
    newest_first = confirming_findings(request).order_by(WORST_FIRST, "-since", "-pk")  # as groups say
    waiting = groups_of(newest_first) if trouble.confirming else []
    waiting = waiting[: max(1, (SHOWN - critical) // 2, SHOWN - len(told))]
    told = told[: max(critical, SHOWN - len(waiting))]
    named, groups = titles(), {group.first: group for group in (*told, *waiting)}
    rows = Finding.objects.filter(pk__in=list(groups)).select_related("cluster") if groups else ()
    found = {row.pk: row for row in dated(rows, last_seen_at=trouble.last_seen_at, now=now)}
    lines = [
        StripLine(row, group, named.get(row.rule, row.rule), code_of(row)[0])
        for group in groups.values()
        if (row := found.get(group.first))  # else it is gone meanwhile
    ]
    said = sum(len(group.keys) for group in groups.values())
    more = max(0, trouble.open + trouble.confirming - said)
    in_shadow_mode = RuleShadow.objects.in_force().count()
    return {"lines": lines, "more": more, "trouble": trouble, "counts": counts, "in_shadow_mode": in_shadow_mode}


def confirming_findings(request: PersonRequest) -> QuerySet[Finding]:
    visible = Finding.objects.without_visible_cause(request.user)
    return visible.confirming().select_related("cluster").order_by(WORST_FIRST, "since", "pk")


def open_findings(request: PersonRequest) -> FindingQuerySet:
    own = Finding.objects.without_visible_cause(request.user)
    return own.open().select_related("cluster").worst_first()
