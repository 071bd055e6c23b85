"""The shift report as a page, as Markdown, and as a file that can be read offline."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone

from edges.requests import PersonRequest
from fleet.web.summary import lines_for
from health.inbox.markdown import handover_as_markdown
from health.inbox.shift_report import HOURS, USUAL, handover_of
from wording.numbers import count

CHOICES = [(hours, count(hours, "hour") if hours < 24 else count(hours // 24, "day")) for hours in HOURS]


class ReportForm(forms.Form):
    """`hours` is how far back resolved findings are included."""

    hours = forms.ChoiceField(choices=CHOICES, required=False)


def shift_report(request: PersonRequest) -> HttpResponse:
    form = ReportForm(request.GET)
    found = _report(request, _hours(form) if form.is_valid() else USUAL)
    return render(request, "health/shift_report/page.html", {"form": form, "choices": CHOICES, **found})


def shift_report_file(request: PersonRequest) -> HttpResponse:
    """Returns one self-contained HTML file: no external style, script or image."""
    form = ReportForm(request.GET)
    if not form.is_valid():
        sentence = " ".join(map(str, form.errors["hours"]))
        return HttpResponse(sentence, status=400, content_type="text/plain; charset=utf-8")
    found = _report(request, _hours(form))
    response = render(request, "health/shift_report/file.html", found)
    name = f"shift-{found['report'].at:%Y%m%d-%H%M}.html"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["Cache-Control"] = "private, no-store"
    return response


def _hours(form: ReportForm) -> int:
    return int(form.cleaned_data["hours"] or USUAL)


def _report(request: PersonRequest, hours: int) -> Mapping[str, Any]:
    now = timezone.now()
    clusters = lines_for(request, now=now)
    report = handover_of(request.user, clusters, hours=hours, now=now)
    inbox = request.build_absolute_uri(reverse("findings"))
    return {
        "report": report,
        "inbox": inbox,
        "site": request.build_absolute_uri("/").rstrip("/"),
        "has_clusters": bool(clusters),
        "markdown": handover_as_markdown(report, inbox=inbox),
    }
