"""CSV files of the tables on the pages of pods, pools and clusters: the same rows as on the page."""

from collections.abc import Iterable, Iterator, Sequence

from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404
from django.utils import timezone

from capacity.free_gpus.defragmentation import Proposal
from capacity.free_gpus.defragmentation_report import defragmentation_of_pool
from capacity.free_gpus.free_gpu_report import FreeGpuReport, free_gpus_of_cluster, free_gpus_of_pool
from capacity.free_gpus.mig_demand_report import mig_demand_of_pool
from capacity.placements.placement_measures import measures_of_pool
from capacity.placements.placement_report import placement_of_pool
from capacity.placements.placement_table import as_cells, lines_of_placement
from capacity.placements.service_level_history import VALUES, recent_hours
from capacity.waiting_pods import explanations_of
from edges.csv_text import download_of
from edges.requests import PersonRequest
from fleet.models import Cluster, Pod, Pool

FileRow = Sequence[object]


def pod_funnel(request: PersonRequest, pod_id: int) -> HttpResponse:
    pod = get_object_or_404(Pod.objects.visible_to(request.user).select_related("cluster"), pk=pod_id)
    found = explanations_of([pod], now=timezone.now()).get(pod.uid)
    if found is None:
        raise Http404
    rows = [(step.title, step.left, step.removed) for step in found.funnel]
    return download_of([("requirement", "nodes_left", "nodes_removed"), *rows], f"nodes-for-pod-{pod.pk}.csv")


def pool_free_gpus_now(request: PersonRequest, pool_id: int) -> HttpResponse:
    pool = _pool(request, pool_id)
    return download_of(
        _free_rows(free_gpus_of_pool(pool, request.user), pool.cluster), f"free-gpus-now-of-pool-{pool.pk}.csv"
    )


def cluster_free_gpus_now(request: PersonRequest, cluster_id: int) -> HttpResponse:
    cluster = get_object_or_404(Cluster.objects.visible_to(request.user), pk=cluster_id)
    report = free_gpus_of_cluster(cluster, request.user)
    return download_of(_free_rows(report, cluster), f"free-gpus-now-of-cluster-{cluster.pk}.csv")


def pool_mig_demand(request: PersonRequest, pool_id: int) -> HttpResponse:
    pool = _pool(request, pool_id)
    report = mig_demand_of_pool(pool, request.user, now=timezone.now())
    head = ("product", "shape", "per_gpu", "offered", "peak", "usual", "gpus_now", "gpus_by_requests")
    rows = [
        (each.product, line.profile or "whole GPU", line.per_gpu, line.offered, line.peak, line.usual, line.gpus_now,
         line.gpus)
        for each in (report.products if report else ())
        for line in each.profiles
    ]  # fmt: skip
    return download_of([head, *known_rows(report, rows)], f"mig-demand-of-pool-{pool.pk}.csv")


def pool_placement(request: PersonRequest, pool_id: int) -> HttpResponse:
    pool = _pool(request, pool_id)
    now = timezone.now()
    report, measures = placement_of_pool(pool, request.user, now=now), measures_of_pool(pool, request.user, now=now)
    rows = as_cells(lines_of_placement(report, measures)) if report and measures else ()
    head = ("figure", "subject", "value", "unit")
    return download_of([head, *known_rows(report, rows)], f"placement-of-pool-{pool.pk}.csv")


def pool_service_level(request: PersonRequest, pool_id: int) -> HttpResponse:
    """Returns the measured hours that the page compares, the oldest first. A blank class: all pods."""
    pool = _pool(request, pool_id)
    head = ("hour", "full_nodes", "full_nodes_samples", "other_nodes", "other_nodes_samples", "trouble", "class")
    rows = [
        (row.hour.isoformat(), *(values[name] for name in VALUES), its_class)
        for row in recent_hours(pool, now=timezone.now())
        for its_class, values in (("", vars(row)), *sorted(row.classes.items()))
    ]
    return download_of([head, *rows], f"service-level-of-pool-{pool.pk}.csv")


def pool_defragmentation(request: PersonRequest, pool_id: int) -> HttpResponse:
    pool = _pool(request, pool_id)
    report = defragmentation_of_pool(pool, request.user, now=timezone.now())
    head = (
        "gpus_of_each", "fits_now", "fits_after", "node", "pod", "owner", "gpus", "gpu_hours_lost", "gpu_hours_loading",
        "target",
    )  # fmt: skip
    rows = [row for each in (report.proposals if report else ()) for row in _moves(each)]
    return download_of([head, *known_rows(report, rows)], f"defragmentation-of-pool-{pool.pk}.csv")


def _pool(request: PersonRequest, pool_id: int) -> Pool:
    return get_object_or_404(Pool.objects.visible_to(request.user).select_related("cluster"), pk=pool_id)


def known_rows(report: object, rows: Iterable[FileRow]) -> Iterable[FileRow]:
    """Returns the rows; a row that says so where there is no report."""
    return [("Unknown: the cluster was not read.",)] if report is None else rows


def _free_rows(report: FreeGpuReport | None, cluster: Cluster) -> list[FileRow]:
    found = report.found if report else None
    rows = [("usable", found.usable, ""), *found.parts] if found else []
    of = cluster.name, timezone.now().isoformat()
    return [("part", "gpus", "nodes", "cluster", "at"), *known_rows(report, [(*row, *of) for row in rows])]


def _moves(proposal: Proposal) -> Iterator[FileRow]:
    start = proposal.size, proposal.fits_now, proposal.fits_after
    for node in proposal.nodes:
        for move in node.moves:
            pod = move.pod
            harm = round(pod.gpu_hours, 4), round(pod.loading_gpu_hours, 4)
            yield *start, node.name, pod.name, pod.owner, pod.gpus, *harm, move.target
    if not proposal.nodes:
        yield start
