"""The page "Weekly usage report", also for print, and its CSV file."""

from collections.abc import Iterator
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone

from capacity.usage.usage_files import MOST_ROWS
from capacity.usage.usage_lines import TITLES, UsePart
from capacity.usage.weekly_report import WeeklyReport, WorkloadLine, not_reserved_of, reserved_of, weekly_report
from capacity.web.usage_days import days_context, shown_uses
from edges.csv_text import download_of
from edges.parts import part_response
from edges.requests import PersonRequest
from fleet.messages.numbers import numbers_of
from fleet.models import Cluster, Observer
from health.telemetry.usage import GpuUse

SHOWN = 50
HEAD = (
    "cluster", "namespace", "workload", "pools", "gpu_hours_reserved", *GpuUse, *UsePart, "cost",
    *(f"cost_{each}" for each in (*GpuUse, *UsePart)), "currency", "energy_kwh", "energy_gpu_hours",
    "pattern", "advice", "setting",
)  # fmt: skip


def usage_report_page(request: PersonRequest) -> HttpResponse:
    clusters = Cluster.objects.visible_to(request.user).values_list("pk", flat=True)
    seq = {"seq": numbers_of(Observer.batches_of(clusters))}
    return render(request, "capacity/usage_report/page.html", {**seq, **_report(request)})


@part_response
def usage_report_part(request: PersonRequest) -> HttpResponse:
    return render(request, "capacity/usage_report/_body.html", _report(request))


def html_file(request: PersonRequest) -> HttpResponse:
    """Returns one self-contained HTML file: no external style, script or image."""
    found = _report(request)
    response = render(request, "capacity/usage_report/file.html", found)
    name = f"usage-report-{found['report'].first:%Y%m%d}-{found['report'].last:%Y%m%d}.html"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["Cache-Control"] = "private, no-store"
    return response


def csv_file(request: PersonRequest) -> HttpResponse:
    """Returns all workloads of the report; the last row says if the file is cut."""
    found = weekly_report(request.user, now=timezone.now(), most=MOST_ROWS)
    rows = [HEAD, *(tuple(_csv_row(line)) for line in found.lines)]
    if found.report.has_more:
        rows.append((f"More than {MOST_ROWS} workloads: use GET /api/v1/usage.",))
    return download_of(rows, f"usage-report-{found.report.first:%Y%m%d}-{found.report.last:%Y%m%d}.csv")


def _csv_row(line: WorkloadLine) -> Iterator[object]:
    of, amount, advice = line.line, line.line.amount, line.advice
    yield from (of.cluster, of.namespace, of.workload, of.pools)
    yield from (round(each, 4) for each in (line.reserved, *amount.hours.values(), *amount.parts.values()))
    costs = (amount.cost, *map(amount.cost_of, (*GpuUse, *UsePart)))
    yield from ("" if each is None else round(each, 4) for each in costs)
    yield amount.currencies
    yield "" if line.activity.energy_kwh is None else round(line.activity.energy_kwh, 4)
    yield round(line.activity.energy_gpu_hours, 4)
    yield from (advice.pattern, advice.text, advice.setting)


def _report(request: PersonRequest) -> dict[str, Any]:
    found = weekly_report(request.user, now=timezone.now(), most=SHOWN)
    total, before = found.report.total, found.before
    return {
        "found": found,
        "report": found.report,
        "uses": [
            (use, *TITLES[use], hours, before.hours[use] if before.total else None, total.cost_text_of(use))
            for use, hours in ((use, total.hours[use]) for use in shown_uses(found.report))
        ],
        "before": before,
        "parts": days_context(found.report)["parts"],
        "reserved": reserved_of(total),
        "rest": _remaining_hours(found),
    }


def _remaining_hours(found: WeeklyReport) -> tuple[float, ...] | None:
    """Returns the hours by column of workloads without a line. None: every workload has one."""
    if not found.report.has_more:
        return None
    held = (found.rest.hours[use] for use in (GpuUse.USED, GpuUse.IDLE, GpuUse.UNMEASURED))
    return reserved_of(found.rest), *held, not_reserved_of(found.rest)
