"""The card of free GPUs over time on the pages of a pool and a cluster, and its CSV file."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone

from capacity.free_gpus.free_gpu_history import DAYS_AT_MOST, days_of, history_of
from capacity.free_gpus.stranded_gpus import StrandedBy
from capacity.models import FreeGpuFigures
from edges.csv_text import download_of
from edges.parts import part_response
from edges.requests import PersonRequest
from fleet.models import Cluster, Pool
from people.rights import Permission, scope_of

DAYS = 14
WIDE, TALL = 672, 120  # of the drawing: two units an hour
GAP = timedelta(hours=1, minutes=30)  # a longer step between two samples is drawn as a gap


@part_response
def pool_free_gpu_history_part(request: PersonRequest, pool_id: int) -> HttpResponse:
    pool = _pool(request, pool_id)
    names = {"key": "pool-free-gpu-history", "csv": "pool-free-gpus-csv", "cluster_id": pool.cluster_id}
    return _history(request, pool, names)


@part_response
def cluster_free_gpu_history_part(request: PersonRequest, cluster_id: int) -> HttpResponse:
    cluster = _whole_cluster(request, cluster_id)
    names = {"key": "cluster-free-gpu-history", "csv": "cluster-free-gpu-history-csv", "cluster_id": cluster_id}
    return _history(request, cluster, names)


def _history(request: PersonRequest, of: Pool | Cluster, names: Mapping[str, object]) -> HttpResponse:
    now = timezone.now()
    samples = history_of(of, days=DAYS, now=now)
    most = max((each.free for each in samples), default=0.0)
    shown = {
        **names,
        "of": of,
        "days": DAYS,
        "most": most,
        "day_rows": days_of(samples),
        "free": lines_of(samples, "free", most, now=now),
        "usable": lines_of(samples, "usable", most, now=now),
        "wide": WIDE,
        "tall": TALL,
        "newest": samples[-1] if samples else None,
    }
    return render(request, "capacity/free_gpus/_history.html", shown)


def csv_file(request: PersonRequest, pool_id: int) -> HttpResponse:
    pool = _pool(request, pool_id)
    return download_of(_rows(pool), f"free-gpus-of-pool-{pool.pk}.csv")


def cluster_csv_file(request: PersonRequest, cluster_id: int) -> HttpResponse:
    return download_of(_rows(_whole_cluster(request, cluster_id)), f"free-gpus-of-cluster-{cluster_id}.csv")


def _rows(of: Pool | Cluster) -> Iterator[Sequence[object]]:
    yield "hour", "free", "usable", *(f"stranded_{cause}" for cause in StrandedBy)
    for each in history_of(of, days=DAYS_AT_MOST, now=timezone.now()):
        causes = (each.stranded.get(cause.value, 0) for cause in StrandedBy)
        yield each.hour.isoformat(), each.free, each.usable, *causes


def lines_of(samples: Sequence[FreeGpuFigures], column: str, most: float, *, now: datetime) -> list[str]:
    """Returns the points of each unbroken line of the drawing. A sample alone is a short line. Pure."""
    begin, lines, before = now - timedelta(days=DAYS), list[list[str]](), None
    for each in samples:
        x = WIDE * ((each.hour - begin) / timedelta(days=DAYS))
        y = TALL - (TALL - 4) * getattr(each, column) / (most or 1.0)
        if before is None or each.hour - before > GAP:
            lines.append([f"{x - 2:.1f},{y:.1f}"])
        lines[-1].append(f"{x:.1f},{y:.1f}")
        before = each.hour
    return [" ".join(points) for points in lines]


def _pool(request: PersonRequest, pool_id: int) -> Pool:
    return get_object_or_404(Pool.objects.visible_to(request.user), pk=pool_id)


def _whole_cluster(request: PersonRequest, cluster_id: int) -> Cluster:
    """Returns a cluster of which the person sees every node.

    :raises Http404: otherwise
    """
    if not scope_of(request.user, Permission.SEE).covers_cluster(cluster_id):
        raise Http404
    return get_object_or_404(Cluster, pk=cluster_id)
