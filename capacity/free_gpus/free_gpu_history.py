"""The history of free and stranded GPUs of a pool: one sample an hour, written after the usage of the hour."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import groupby
from statistics import fmean

from django.conf import settings

from capacity.free_gpus.free_gpu_report import all_free_gpus_of_pool
from capacity.models import FreeGpuSample
from fleet.models import Pool
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
    """Writes the samples of a cluster's pools. Six queries a pool. A pool whose pods were never read has none."""
    for pool in Pool.objects.filter(cluster=cluster_id).order_by("pk"):
        report = all_free_gpus_of_pool(pool)
        if report is not None:
            found = report.found
            given = {
                "free": found.free,
                "usable": found.usable,
                "stranded": {cause.value: gpus for cause, gpus, _ in found.parts},
            }
            FreeGpuSample.objects.update_or_create(pool=pool, hour=hour + HOUR, defaults=given)


def history_of(pool: Pool, *, days: int, now: datetime) -> Sequence[FreeGpuSample]:
    """Returns the samples of the last days, the oldest first. One query."""
    return list(FreeGpuSample.objects.filter(pool=pool, hour__gt=now - timedelta(days=days)).order_by("hour"))


def days_of(samples: Sequence[FreeGpuSample]) -> list[FreeGpuDay]:
    """Returns the means of each UTC day, the newest first."""
    found = []
    for day, of_day in groupby(samples, key=lambda each: each.hour.date()):
        rows = list(of_day)
        free, usable = fmean(row.free for row in rows), fmean(row.usable for row in rows)
        found.append(FreeGpuDay(day, free, usable, max(row.free - row.usable for row in rows), len(rows)))
    return found[::-1]


def tidy(*, now: datetime, **_: datetime) -> int:
    """Deletes samples as old as deleted hours of GPUs, and returns their number."""
    return delete(FreeGpuSample.objects.filter(hour__lt=now - timedelta(days=settings.KEEP_GPU_HOURS_DAYS)))
