"""The usage of a period as a CSV file."""

from collections.abc import Iterator
from datetime import datetime

from django.http import HttpResponse

from capacity.usage.usage_filter import DAY, UsageFilter
from capacity.usage.usage_lines import UsageLine, UsePart
from capacity.usage.usage_report import usage_report
from edges.csv_text import download_of
from health.telemetry.usage import GpuUse
from people.models import User

MOST_ROWS = 50_000
HEAD = (
    "cluster",
    "pools",
    "namespace",
    "workload",
    "gpu_hours",
    *GpuUse,
    *UsePart,
    "used_with_estimate",
    "cost",
    *(f"cost_{each}" for each in (*GpuUse, *UsePart)),
    "currency",
    "gpu_hours_without_price",
)


def csv_of(user: User, wanted: UsageFilter, *, now: datetime) -> HttpResponse:
    """Returns all lines of the report, or its days, with at most `MOST_ROWS` rows. The last row says if it is cut."""
    report = usage_report(user, wanted, now=now, most=MOST_ROWS)
    first = "day" if wanted.by == DAY else None
    rows: list[tuple[object, ...]] = [HEAD if first is None else ("day", "recorded_hours", *HEAD[4:])]
    rows += [tuple(_usage_row(line, is_day=first is not None)) for line in report.lines]
    if report.has_more:
        rows.append((f"More than {MOST_ROWS} lines: filter by cluster or namespace.",))
    return download_of(rows, f"usage-by-{wanted.by}-{report.first:%Y%m%d}-{report.last:%Y%m%d}.csv")


def _usage_row(line: UsageLine, *, is_day: bool) -> Iterator[object]:
    if is_day:
        yield from (line.name, line.recorded)
    else:
        yield from (line.cluster, line.pools, line.namespace, line.workload or line.owner)
    amount = line.known_amount
    if amount is None:  # blank cells: zero would be a record
        yield from ("" for _ in HEAD[4:])
        return
    hours = (amount.total, *amount.hours.values(), *amount.parts.values(), amount.rated)
    yield from (round(each, 4) for each in hours)
    costs = (amount.cost, *map(amount.cost_of, (*GpuUse, *UsePart)))
    yield from ("" if each is None else round(each, 4) for each in costs)
    yield amount.currencies
    yield round(amount.unpriced, 4)
