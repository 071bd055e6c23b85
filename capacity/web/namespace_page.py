"""The pages of a namespace and of a workload in it."""

from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone

from capacity.namespaces import NamespaceReport, namespace_report, read_workload
from capacity.pods.addresses import namespace_page, workload_page
from capacity.pods.rows import titled
from capacity.pods.views import POD_VIEWS
from capacity.web.pods_page import group_rows
from capacity.web.usage_days import days_context
from edges.parts import part_response
from edges.requests import PersonRequest
from fleet.messages.numbers import numbers_of
from fleet.models import Cluster
from fleet.owner_chains import GROUPED
from fleet.states.pod import PodState
from fleet.web.states import POD_GLYPHS
from health.inbox.last_seen import dated

GROUPS_AT_MOST = 100
PAGE, BODY = "capacity/namespace/page.html", "capacity/namespace/_body.html"


def namespace(request: PersonRequest, cluster_id: int, name: str) -> HttpResponse:
    return _page(request, cluster_id, name)


@part_response
def namespace_part(request: PersonRequest, cluster_id: int, name: str) -> HttpResponse:
    return render(request, BODY, _shown(request, _visible(request, cluster_id), name))


def workload(request: PersonRequest, cluster_id: int, path: str) -> HttpResponse:
    return _page(request, cluster_id, *_named(path))


@part_response
def workload_part(request: PersonRequest, cluster_id: int, path: str) -> HttpResponse:
    return render(request, BODY, _shown(request, _visible(request, cluster_id), *_named(path)))


def _page(request: PersonRequest, cluster_id: int, *named: str) -> HttpResponse:
    cluster = _visible(request, cluster_id)
    seen = {"seq": numbers_of({cluster.pk: cluster.batch})}
    return render(request, PAGE, {**seen, **_shown(request, cluster, *named)})


def _visible(request: PersonRequest, cluster_id: int) -> Cluster:
    return get_object_or_404(Cluster.objects.visible_to(request.user).select_related("observer"), pk=cluster_id)


def _named(path: str) -> tuple[str, str]:
    """Returns namespace and workload of `ml/Job/train`."""
    named = read_workload(path)
    if named is None:
        raise Http404
    return named


def _shown(request: PersonRequest, cluster: Cluster, namespace: str, workload: str = "") -> dict[str, Any]:
    now = timezone.now()
    report = namespace_report(request.user, cluster, namespace, workload, now=now)
    return {
        "found": report,
        "cluster": cluster,
        "name": workload or namespace,
        "namespace_href": namespace_page(cluster.pk, namespace),
        "recorded_for_href": workload_page(cluster.pk, namespace, report.recorded_for),
        "part": _part(report),
        "groups": group_rows(report.groups[:GROUPS_AT_MOST]),
        "more_groups": max(0, len(report.groups) - GROUPS_AT_MOST),
        "states": [
            (title, POD_GLYPHS[state], number, POD_VIEWS.address(report.table.wanted.with_state(state.value).query()))
            for state, title, number in titled(report.table.counts)
        ],
        "findings": dated(report.findings, last_seen_at={}, now=now),
        "pods_href": POD_VIEWS.address(report.table.wanted.query()),
        "groups_href": POD_VIEWS.address(report.table.wanted.by_workload().query()),
        "grouped": GROUPED,
        "own_kind": workload.partition("/")[0],
        "running": report.table.counts.get(PodState.READY, 0),
        "gpus": sum(each.gpus for each in report.groups),
        "waiting_gpus": sum(each.waiting_gpus for each in report.groups),
        **days_context(report.usage),
    }


def _part(report: NamespaceReport) -> str:
    if report.workload:
        page = workload_page(report.cluster.pk, report.namespace, report.workload)
    else:
        page = namespace_page(report.cluster.pk, report.namespace)
    return f"{reverse('fleet')}parts{page}"
