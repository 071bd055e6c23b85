"""The list of GPU pods across the clusters that a user sees."""

from collections.abc import Iterable
from typing import Any

from django.http import HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_POST

from capacity.pods.files import TooManyPods, csv_of, csv_of_workloads
from capacity.pods.pod_filter import ORDERS, PARTS, PodFilter
from capacity.pods.rejected_workloads import rejected_workloads
from capacity.pods.rows import PodTable, table_of, titled
from capacity.pods.views import POD_VIEWS
from capacity.pods.workload_groups import WorkloadGroup, groups_of
from capacity.suspended_jobs import suspended_demand
from edges.digits import whole_number
from edges.parts import part_response
from edges.requests import PersonRequest
from fleet.gpu_pods import BY_CLAIM, STATES
from fleet.messages.numbers import numbers_of
from fleet.models import Cluster, Node, Observer
from fleet.queries import pools_named
from fleet.states.pod import TITLES
from fleet.web.states import POD_GLYPHS
from health.web.saved_views import context_of, forget_view, save_view
from people.models import User
from people.rights import Permission, scope_of

PER_PAGE = 50


def pods(request: PersonRequest) -> HttpResponse:
    clusters = _clusters(request.user)
    context = {
        "seq": numbers_of(Observer.batches_of(clusters)),
        "has_role": not scope_of(request.user, Permission.SEE).nowhere,
        **_table(request),
        **context_of(request, POD_VIEWS),
        "cluster_choices": list(clusters.values()),
        "pool_choices": pools_named(request.user),
        "resource_choices": _resources(request.user),
        "state_choices": [(name, TITLES[state]) for name, state in STATES.items()],
        "order_choices": [(key, title) for key, (title, _) in ORDERS.items()],
    }
    return render(request, "capacity/pods/page.html", context)


@part_response
def pods_part(request: PersonRequest) -> HttpResponse:
    response = render(request, "capacity/pods/_table.html", _table(request))
    if request.headers.get("HX-Trigger") == "pod-filters":
        response["HX-Push-Url"] = _address(PodFilter.read(request.GET))
    return response


@part_response
def suspended_jobs_part(request: PersonRequest) -> HttpResponse:
    return render(request, "capacity/pods/_suspended.html", {"demand": suspended_demand(request.user)})


@part_response
def rejected_workloads_part(request: PersonRequest) -> HttpResponse:
    return render(
        request, "capacity/pods/_rejected.html", {"found": rejected_workloads(request.user, now=timezone.now())}
    )


def csv_file(request: PersonRequest) -> HttpResponse | StreamingHttpResponse:
    table = table_of(request.user, PodFilter.read(request.GET), now=timezone.now())
    if table.wanted.by:
        return csv_of_workloads(table)
    try:
        return csv_of(table)
    except TooManyPods as refusal:
        return HttpResponse(str(refusal), status=400, content_type="text/plain; charset=utf-8")


@require_POST
def save(request: PersonRequest) -> HttpResponse:
    return save_view(request, POD_VIEWS)


@require_POST
def forget(request: PersonRequest, view_id: int) -> HttpResponse:
    return forget_view(request, POD_VIEWS, view_id)


def _table(request: PersonRequest) -> dict[str, Any]:
    wanted, now = PodFilter.read(request.GET), timezone.now()
    table = table_of(request.user, wanted, now=now)
    groups = groups_of(table) if wanted.by else []
    count = len(groups) if wanted.by else len(table)
    pages = max(1, -(-count // PER_PAGE))
    number = min(max(1, whole_number(request.GET.get("page", "")[:6]) or 1), pages)
    start = (number - 1) * PER_PAGE
    groups = groups[start : start + PER_PAGE]
    lines = [] if wanted.by else table.lines(start, start + PER_PAGE)
    return {
        "wanted": wanted,
        "query": wanted.query(),
        "lines": lines,
        "groups": group_rows(groups),
        "count": count,
        "first": start + 1,
        "last": start + len(lines or groups),
        "number": number,
        "pages": pages,
        "before": number - 1,
        "after": number + 1,
        "states": [
            (
                title,
                POD_GLYPHS[state],
                count,
                POD_VIEWS.address(wanted.with_state(state.value).query()),
                state == wanted.state,
            )
            for state, title, count in titled(table.counts)
        ],
        "every": sum(table.counts.values()),
        "every_href": _address(wanted.without("state")),
        "without_owner_href": _address(wanted.without("owner")),
        "every_pod_href": _address(wanted.by_pod()),
        "by_workload_href": _address(wanted.by_workload()),
        "all_href": _address(PodFilter(by=wanted.by)),
        "hints": [] if lines or groups else _filter_hints(request.user, table),
    }


def group_rows(groups: Iterable[WorkloadGroup]) -> list[tuple[WorkloadGroup, list[tuple[str, str, int, str]], str]]:
    """Returns workloads with title, glyph, number and address of the pods in each state, and the address of all."""
    return [
        (
            group,
            [(TITLES[state], POD_GLYPHS[state], number, _address(group.filter_of(state.value)))
             for state, number in group.worst_first],
            _address(group.filter_of()),
        )
        for group in groups
    ]  # fmt: skip


def _filter_hints(user: User, table: PodTable) -> list[tuple[str, str, int]]:
    """Returns for an empty result how many pods would match without each part of the filter."""
    looser = [(PARTS[name], table.wanted.without(name)) for name in table.wanted.active]
    found = [
        (title, POD_VIEWS.address(each.query()), len(table_of(user, each, now=table.now))) for title, each in looser
    ]
    return sorted((hint for hint in found if hint[2]), key=lambda hint: -hint[2])


def _address(wanted: PodFilter) -> str:
    return POD_VIEWS.address(wanted.query())


def _clusters(user: User) -> dict[int, str]:
    return dict(Cluster.objects.visible_to(user).order_by("name").values_list("pk", "name"))


def _resources(user: User) -> list[str]:
    """Returns the GPU resources that visible nodes offered. Nodes of one layout have equal values."""
    offered = Node.objects.visible_to(user).with_gpus().order_by().values_list("expected", flat=True).distinct()
    return [*sorted({name for names in offered for name in names}), BY_CLAIM]
