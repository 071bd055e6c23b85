"""The card of proposals to defragment a pool, on its page."""

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone

from capacity.free_gpus.defragmentation_report import defragmentation_of_pool
from edges.parts import part_response
from edges.requests import PersonRequest
from fleet.models import Pool


@part_response
def pool_defragmentation_part(request: PersonRequest, pool_id: int) -> HttpResponse:
    pool = get_object_or_404(Pool.objects.visible_to(request.user), pk=pool_id)
    report = defragmentation_of_pool(pool, request.user, now=timezone.now())
    return render(request, "capacity/free_gpus/_defragmentation.html", {"pool": pool, "report": report})
