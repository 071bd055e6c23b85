"""The approvals page: stages that wait for this person, and their own decisions."""

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone

from edges.parts import part_response
from edges.requests import PersonRequest
from rollouts.approvals.decisions import decisions_of_person, waits_for


def approvals(request: PersonRequest) -> HttpResponse:
    return render(request, "rollouts/approvals/page.html", _approvals(request))


@part_response
def approvals_part(request: PersonRequest) -> HttpResponse:
    return render(request, "rollouts/approvals/_body.html", _approvals(request))


@part_response
def count_part(request: PersonRequest) -> HttpResponse:
    number = sum(each.is_theirs for each in waits_for(request.user))
    return render(request, "rollouts/approvals/_count.html", {"number": number})


def _approvals(request: PersonRequest) -> dict[str, object]:
    waiting = waits_for(request.user)
    given = list(decisions_of_person(request.user)[:MOST])
    return {
        "theirs": [each for each in waiting if each.is_theirs],
        "others": [each for each in waiting if not each.is_theirs],
        "given": given,
        "most": MOST,
        "now": timezone.now(),
    }


MOST = 50
