"""The card of free GPUs over time on the page of a pool, and its CSV file."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone

from capacity.free_gpus.free_gpu_history import DAYS_AT_MOST, days_of, history_of
from capacity.free_gpus.stranded_gpus import StrandedBy
from capacity.models import FreeGpuSample
from edges.csv_text import download_of
from edges.parts import part_response
from edges.requests import PersonRequest
from fleet.models import Pool

DAYS = 14
WIDE, TALL = 672, 120  # of the drawing: two units an hour
GAP = timedelta(hours=1, minutes=30)  # a longer step between two samples is drawn as a gap


@part_response
def pool_free_gpu_history_part(request: PersonRequest, pool_id: int) -> HttpResponse:
    pool, now = _visible(request, pool_id), timezone.now()
    samples = history_of(pool, days=DAYS, now=now)
    most = max((each.free for each in samples), default=0.0)
    shown = {
        "pool": pool,
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
    pool = _visible(request, pool_id)
    rows: list[Sequence[object]] = [("hour", "free", "usable", *(f"stranded_{cause}" for cause in StrandedBy))]
    for each in history_of(pool, days=DAYS_AT_MOST, now=timezone.now()):
        causes = (each.stranded.get(cause.value, 0) for cause in StrandedBy)
        rows.append((each.hour.isoformat(), each.free, each.usable, *causes))
    return download_of(rows, f"free-gpus-of-pool-{pool.pk}.csv")


def lines_of(samples: Sequence[FreeGpuSample], column: str, most: float, *, now: datetime) -> list[str]:
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


def _visible(request: PersonRequest, pool_id: int) -> Pool:
    return get_object_or_404(Pool.objects.visible_to(request.user), pk=pool_id)
