"""The page "Usage and cost": GPU-hours by use, per day and per pool, namespace or workload."""

from collections.abc import Iterable, Sequence
from typing import Any

from django.conf import settings
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone

from capacity.pods.addresses import workload_page
from capacity.usage.list_prices import ListPrice, list_prices_of
from capacity.usage.pool_prices import UnpricedPool
from capacity.usage.usage_files import csv_of
from capacity.usage.usage_filter import (
    COST,
    GROUPINGS,
    HOURS,
    NAME,
    NAMESPACE,
    OWN,
    OWNER,
    PERIODS,
    POOL,
    WORKLOAD,
    BadPeriod,
    UsageFilter,
)
from capacity.usage.usage_lines import PART_TITLES, TITLES, UsageLine
from capacity.usage.usage_report import usage_report
from capacity.web.usage_days import PARTS_IN_TABLES, cells_of, days_context, shown_uses
from edges.digits import whole_number
from edges.parts import part_response
from edges.requests import PersonRequest
from fleet.messages.numbers import numbers_of
from fleet.models import Cluster, Observer
from fleet.queries import pools_named
from health.telemetry.usage import GpuUse
from people.rights import Permission, scope_of

PER_PAGE = 50


def usage(request: PersonRequest) -> HttpResponse:
    clusters = dict(Cluster.objects.visible_to(request.user).order_by("name").values_list("pk", "name"))
    context = {
        "seq": numbers_of(Observer.batches_of(clusters)),
        "has_role": not scope_of(request.user, Permission.SEE).nowhere,
        "cluster_choices": list(clusters.values()),
        "pool_choices": pools_named(request.user),
        "periods": [*((key, title) for key, (title, _) in PERIODS.items()), (OWN, "own range")],
        "groupings": [(key, title) for key, title in GROUPINGS.items() if key != OWNER or settings.OWNER_LABEL],
        **_report(request),
    }
    return render(request, "capacity/usage/page.html", context)


@part_response
def usage_part(request: PersonRequest) -> HttpResponse:
    context = _report(request)
    response = render(request, "capacity/usage/_body.html", context)
    if request.headers.get("HX-Trigger") == "usage-filters" and not context["problem"]:
        response["HX-Push-Url"] = _address(context["wanted"])
    return response


def csv_file(request: PersonRequest) -> HttpResponse:
    try:
        return csv_of(request.user, UsageFilter.read(request.GET), now=timezone.now())
    except BadPeriod as refusal:
        return HttpResponse(str(refusal), status=400, content_type="text/plain; charset=utf-8")


def _report(request: PersonRequest) -> dict[str, Any]:
    try:
        wanted, problem = UsageFilter.read(request.GET), ""
    except BadPeriod as refusal:
        wanted, problem = UsageFilter(), str(refusal)
    number = max(1, whole_number(request.GET.get("page", "")[:4]) or 1)
    report = usage_report(request.user, wanted, now=timezone.now(), start=(number - 1) * PER_PAGE, most=PER_PAGE)
    return {
        "wanted": wanted,
        "problem": problem,
        "report": report,
        "heads": _table_heads(wanted, shown_uses(report)),
        "lines": [
            (line, cells_of(line.amount, shown_uses(report)), _address_of_parts(wanted, line)) for line in report.lines
        ],
        "grouping": GROUPINGS.get(wanted.by, ""),
        **days_context(report),
        "csv": f"{reverse('usage-csv')}?{wanted.query()}",
        "number": number,
        "before": number - 1,
        "after": number + 1,
        "unpriced": _suggestions(request, report.unpriced),
    }


def _table_heads(wanted: UsageFilter, uses: Iterable[GpuUse]) -> list[dict[str, Any]]:
    """Returns the sortable heads of the table."""
    columns = [
        (NAME, GROUPINGS.get(wanted.by, ""), ""),
        (HOURS, "GPU-hours", "All hours of the line"),
        *((f"-{use}", *TITLES[use]) for use in uses),
        *(("", *PART_TITLES[part]) for part in PARTS_IN_TABLES),
        (COST, "Cost", "All hours at the price of their day"),
    ]
    return [
        {
            "title": title,
            "note": note,
            "is_number": key != NAME,
            "sorted": ("ascending" if key == NAME else "descending") if wanted.ordering == key else "",
            "href": _address(wanted, ordering=key) if key else "",
        }
        for key, title, note in columns
    ]


def _address_of_parts(wanted: UsageFilter, line: UsageLine) -> str:
    """Returns the page with the parts of a line, or of its workload; blank: hours without a pod."""
    if wanted.by == POOL and line.name == line.pools and "," not in line.name and line.cluster and line.has_pool:
        return _address(wanted, by=NAMESPACE, pool=f"{line.cluster}/{line.name}")
    if wanted.by == NAMESPACE and line.namespace:
        return _address(wanted, by=WORKLOAD, namespace=line.namespace, cluster=line.cluster)
    if wanted.by == WORKLOAD and line.workload:
        return workload_page(line.cluster_id, line.namespace, line.workload)
    return ""


def _suggestions(
    request: PersonRequest, unpriced: Sequence[UnpricedPool]
) -> list[tuple[UnpricedPool, list[ListPrice], bool]]:
    """Returns the pools without a price, with list prices, and whether the person may set the price."""
    administers = scope_of(request.user, Permission.ADMINISTER)
    return [
        (each, list_prices_of(each.products), administers.covers_cluster(each.pool.cluster_id)) for each in unpriced
    ]


def _address(wanted: UsageFilter, **changed: str) -> str:
    return f"{reverse('usage')}?{wanted.query(**changed)}".rstrip("?")
