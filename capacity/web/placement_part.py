"""The card of placements on the page of a pool."""

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone

from capacity.placements.placement_measures import measures_of_pool
from capacity.placements.placement_report import placement_of_pool
from edges.parts import part_response
from edges.requests import PersonRequest
from fleet.models import Pool


@part_response
def pool_placement_part(request: PersonRequest, pool_id: int) -> HttpResponse:
    pool = get_object_or_404(Pool.objects.visible_to(request.user), pk=pool_id)
    now = timezone.now()
    report, measures = placement_of_pool(pool, request.user, now=now), measures_of_pool(pool, request.user, now=now)
    heats = [("on full nodes", measures.full), ("on other nodes", measures.other)] if measures else []
    shown = {"pool": pool, "report": report, "measures": measures, "heats": heats, "at": now}
    return render(request, "capacity/placements/_pool.html", shown)
