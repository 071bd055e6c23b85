"""The page about the product's own state."""

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone

from config.health import NEEDED, REPORTED
from edges.parts import part_response
from edges.requests import PersonRequest
from fleet.freshness.threads import threads
from fleet.models import ObservingWorker


def status(request: PersonRequest) -> HttpResponse:
    return render(request, "status/page.html", _status())


@part_response
def status_part(request: PersonRequest) -> HttpResponse:
    return render(request, "status/_status.html", _status())


def _status() -> dict[str, object]:
    now = timezone.now()
    return {
        "checks": [(name, check()) for name, check in (NEEDED | REPORTED).items()],
        "threads": threads(now=now),
        "workers": ObservingWorker.objects.filter(lease_until__gte=now).order_by("name"),
    }
