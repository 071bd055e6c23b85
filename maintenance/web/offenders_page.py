"""The page of boards and nodes with several cases."""

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone

from edges.requests import PersonRequest
from maintenance.offenders import MOST, offenders


def repeat_offenders(request: PersonRequest) -> HttpResponse:
    rows = offenders(request.user, now=timezone.now())
    return render(request, "maintenance/offenders.html", {"rows": rows, "is_more": len(rows) == MOST, "most": MOST})
