"""Findings about workloads that have whole GPUs, but use little of their memory and compute."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import F, Sum

from capacity.usage.advice import LITTLE, SLICES, Activity
from fleet.models import Cluster
from health.evaluation.finding_sources import FindingSource
from health.models import WorkloadActivity
from health.rules.base import Problem, Severity
from wording.reports import MOST_ITEMS, EvidenceItem, fit

DAYS = 7
ENOUGH_HOURS = 24.0  # GPU-hours with a known peak of memory; with fewer, nothing is reported. Ours

SUMMED = ("memory_hours", *SLICES, "busy_hours", "busy_sum")


def small_workloads(cluster: Cluster, *, now: datetime) -> Iterator[tuple[str, Problem]]:
    """Yields one problem with the workloads that have the most hours. One query."""
    since = (now.astimezone(UTC) - timedelta(days=DAYS)).date()
    rows: Any = WorkloadActivity.objects.filter(cluster=cluster, day__gte=since).exclude(workload="").order_by()
    found = (
        rows.values("namespace", "workload")
        .annotate(**{f"{name}_total": Sum(name) for name in SUMMED})
        .filter(
            memory_hours_total__gte=ENOUGH_HOURS,
            fits_quarter_total__gte=F("memory_hours_total") * (1 - 1e-9),
            busy_hours_total__gt=0,
            busy_sum_total__lt=LITTLE * F("busy_hours_total"),
        )
        .order_by("-memory_hours_total", "namespace", "workload")[:MOST_ITEMS]
    )
    items = tuple(map(_evidence, found))
    if items:
        yield (
            "requests of workloads",
            Problem(
                severity=Severity.NOTE,
                title=fit("Small workloads had whole GPUs in {}", cluster.name),
                summary=f"In each measured hour of {DAYS} days, a quarter of the GPU's memory was enough.",
                evidence=items,
                identity=" ".join(sorted(item.label for item in items)),
            ),
        )


def _evidence(row: dict[str, Any]) -> EvidenceItem:
    activity = Activity.of({name: row[f"{name}_total"] for name in SUMMED})
    part = SLICES.get(activity.fits, "a quarter")
    return EvidenceItem(
        f"{row['workload']} in {row['namespace']}", f"{part} of the memory was enough, {activity.busy or 0:.0%} busy"
    )


SMALL_WORKLOADS = FindingSource(
    "small-requests-on-big-gpus",
    "Small workloads have whole GPUs",
    timedelta(0),  # the hours took their time
    small_workloads,
    f"Workloads had whole GPUs alone for {ENOUGH_HOURS:g} GPU-hours in {DAYS} days. They used at most a quarter of the "
    f"memory, and were less than {LITTLE:.0%} busy.",
    steps=(
        "Ask the owners whether a MIG slice, a share or a smaller GPU is enough.",
        "Compare with the page Usage and cost. It names the setting for each workload.",
    ),
    about="requests of workloads",
    every=timedelta(hours=1),  # as often as hours are recorded
)
