"""The panel of pods that do not run, on the home page."""

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone

from capacity.pods.pod_filter import PodFilter
from capacity.pods.unstarted_pods import unstarted_pods
from capacity.pods.views import POD_VIEWS
from edges.parts import part_response
from edges.requests import PersonRequest
from fleet.states.pod import TITLES, PodState
from fleet.web.states import POD_GLYPHS
from fleet.web.summary import lines_for

OLDEST_FIRST = PodFilter(state=PodState.PENDING.value, ordering="created_at")


@part_response
def unstarted_pods_part(request: PersonRequest) -> HttpResponse:
    now = timezone.now()
    found = unstarted_pods(request.user, lines_for(request, now=now), now=now)
    states = [
        (TITLES[state].lower(), POD_GLYPHS[state], number, POD_VIEWS.address(PodFilter(state=state.value).query()))
        for state, number in found.counts.items()
    ]
    context = {"found": found, "states": states, "oldest_href": POD_VIEWS.address(OLDEST_FIRST.query())}
    return render(request, "capacity/pods/_unstarted.html", context)
