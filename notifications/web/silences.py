"""The silences of Alertmanagers on the page of a finding, beside its mutes."""

from datetime import datetime

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone

from edges.parts import part_response
from edges.requests import PersonRequest
from health.models import Finding
from notifications.queries import refusing_silence, silences_of_key


@part_response
def silences_part(request: PersonRequest, finding_id: int) -> HttpResponse:
    """Renders the silences of a finding's alert, and why its mute is none; nothing without either."""
    finding = get_object_or_404(Finding.objects.visible_to(request.user), pk=finding_id)
    found = [
        (channel, silence, until)
        for channel, silence in silences_of_key(f"finding/{finding.pk}")
        if (until := datetime.fromisoformat(silence["until"])) > timezone.now()
    ]
    context = {"silences": found, "refusing": refusing_silence(f"finding/{finding.pk}")}
    return render(request, "notifications/_silences.html", context)
