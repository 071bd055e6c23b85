"""The page of boards and nodes with several cases."""

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone

from edges.requests import PersonRequest
from maintenance.offenders import MOST, MOST_CASES, offenders


def repeat_offenders(request: PersonRequest) -> HttpResponse:
    found = offenders(request.user, now=timezone.now())
    context = {"found": found, "rows": found.rows, "most": MOST, "most_cases": MOST_CASES}
    return render(request, "maintenance/offenders.html", context)
