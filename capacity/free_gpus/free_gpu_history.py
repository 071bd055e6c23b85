"""The history of free and stranded GPUs of pools and clusters: one sample an hour, written after its usage."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import groupby
from statistics import fmean
from typing import Any

from django.conf import settings

from capacity.free_gpus.free_gpu_report import FreeGpuReport, all_free_gpus_of_cluster, all_free_gpus_of_pool
from capacity.models import ClusterFreeGpuSample, FreeGpuFigures, FreeGpuSample
from fleet.models import Cluster, Pool
from fleet.retention import delete

HOUR = timedelta(hours=1)
DAYS_AT_MOST = 90


@dataclass(frozen=True)
class FreeGpuDay:
    day: date
    free: float  # mean
    usable: float  # mean
    stranded_most: float
    hours: int  # with a sample


def record(cluster_id: int, hour: datetime) -> None:
    """Writes the samples of a cluster and its pools. Six queries for each. Kinds that were never read have none."""
    for pool in Pool.objects.filter(cluster=cluster_id).order_by("pk"):
        if report := all_free_gpus_of_pool(pool):
            FreeGpuSample.objects.update_or_create(pool=pool, hour=hour + HOUR, defaults=_figures(report))
    if report := all_free_gpus_of_cluster(cluster_id):
        ClusterFreeGpuSample.objects.update_or_create(
            cluster_id=cluster_id, hour=hour + HOUR, defaults=_figures(report)
        )


def _figures(report: FreeGpuReport) -> dict[str, Any]:
    found = report.found
    stranded = {cause.value: gpus for cause, gpus, _ in found.parts}
    return {"free": found.free, "usable": found.usable, "stranded": stranded}


def history_of(of: Pool | Cluster, *, days: int, now: datetime) -> Sequence[FreeGpuFigures]:
    """Returns the samples of the last days of a pool, or of a whole cluster, the oldest first. One query."""
    rows: Any = (
        FreeGpuSample.objects.filter(pool=of)
        if isinstance(of, Pool)
        else (ClusterFreeGpuSample.objects.filter(cluster=of))
    )
    return list(rows.filter(hour__gt=now - timedelta(days=days)).order_by("hour"))


def days_of(samples: Sequence[FreeGpuFigures]) -> list[FreeGpuDay]:
    """Returns the means of each UTC day, the newest first."""
    found = []
    for day, of_day in groupby(samples, key=lambda each: each.hour.date()):
        rows = list(of_day)
        free, usable = fmean(row.free for row in rows), fmean(row.usable for row in rows)
        found.append(FreeGpuDay(day, free, usable, max(row.free - row.usable for row in rows), len(rows)))
    return found[::-1]


def tidy(*, now: datetime, **_: datetime) -> int:
    """Deletes samples as old as deleted hours of GPUs, and returns their number."""
    oldest = now - timedelta(days=settings.KEEP_GPU_HOURS_DAYS)
    return sum(delete(model.objects.filter(hour__lt=oldest)) for model in (FreeGpuSample, ClusterFreeGpuSample))
