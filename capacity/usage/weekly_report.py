"""The report of the last 7 days: reserved, used and idle GPU-hours of each workload, with cost, energy and advice."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Sum

from capacity.usage.advice import Activity, Advice, advice_of
from capacity.usage.spot_places import SpotPlaces, spot_places
from capacity.usage.usage_filter import OWN, WORKLOAD, UsageFilter
from capacity.usage.usage_lines import UsageAmount, UsageLine
from capacity.usage.usage_report import UsageReport, usage_report
from fleet.models import Cluster
from health.models import WorkloadActivity
from health.telemetry.usage import GpuUse
from people.models import User

WEEK = timedelta(days=7)
MOST_IDLE = f"-{GpuUse.IDLE}"
SUMMED = tuple(name for name in WorkloadActivity.added_up())
PREFIX = "sum_of_"  # an aggregate may not have a column's name
Key = tuple[str, str, str]  # cluster, namespace and workload


@dataclass(frozen=True)
class WorkloadLine:
    line: UsageLine
    activity: Activity
    advice: Advice

    @property
    def reserved(self) -> float:
        return reserved_of(self.line.amount)

    @property
    def not_reserved(self) -> float:
        return not_reserved_of(self.line.amount)


@dataclass(frozen=True)
class WeeklyReport:
    report: UsageReport
    lines: Sequence[WorkloadLine]
    rest: UsageAmount  # of workloads without a line
    before: UsageAmount  # of the 7 days before

    @property
    def energy_kwh(self) -> float | None:
        """Returns the energy of the lines. None: no GPU exports its power."""
        known = [each.activity.energy_kwh for each in self.lines if each.activity.energy_kwh is not None]
        return sum(known) if known else None

    @property
    def energy_gpu_hours(self) -> float:
        """Returns the GPU-hours with known power, which the energy is of."""
        return sum(each.activity.energy_gpu_hours for each in self.lines)


def reserved_of(amount: UsageAmount) -> float:
    """Returns the GPU-hours that pods had."""
    return sum(amount.hours[use] for use in (GpuUse.USED, GpuUse.IDLE, GpuUse.UNMEASURED))


def not_reserved_of(amount: UsageAmount) -> float:
    """Returns the GPU-hours that no pod is known to have had. With the reserved ones they are all hours."""
    return amount.total - reserved_of(amount)


def weekly_report(user: User, *, now: datetime, most: int) -> WeeklyReport:
    """Returns the report with at most so many lines, the most idle hours first. 23 queries."""
    report = usage_report(user, UsageFilter(by=WORKLOAD, ordering=MOST_IDLE), now=now, most=most)
    earlier = UsageFilter(period=OWN, first=report.first - WEEK, last=report.last - WEEK)
    activity, places = _activity_of(user, report), spot_places(user)
    lines = [_workload_line(line, activity, places) for line in report.lines]
    before = usage_report(user, earlier, now=now, most=1).total
    return WeeklyReport(report, lines, report.total.without([line.amount for line in report.lines]), before)


def _workload_line(line: UsageLine, activity: Mapping[Key, Activity], places: SpotPlaces) -> WorkloadLine:
    found = activity.get((line.cluster, line.namespace, line.workload), Activity())
    spot = places.label_for(line.cluster, line.pools)
    return WorkloadLine(line, found, advice_of(line.workload, line.amount.hours, found, spot=spot))


def _activity_of(user: User, report: UsageReport) -> dict[Key, Activity]:
    """Returns the activity of the workloads that have lines. Two queries."""
    names = dict(Cluster.objects.visible_to(user).values_list("pk", "name"))
    owners = [line for line in report.lines if line.namespace]
    rows: Any = WorkloadActivity.objects.visible_to(user).filter(
        day__gte=report.first,
        day__lte=report.last,
        namespace__in={line.namespace for line in owners},
        workload__in={line.workload for line in owners},
    )
    sums = rows.order_by().values("cluster", "namespace", "workload")
    return {
        (names.get(row["cluster"], ""), row["namespace"], row["workload"]): Activity.of(
            {name: row[f"{PREFIX}{name}"] for name in SUMMED}
        )
        for row in sums.annotate(**{f"{PREFIX}{name}": Sum(name) for name in SUMMED})
    }
