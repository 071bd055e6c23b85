"""The price in force of a pool, among the facts of its page."""

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone

from capacity.usage.pool_prices import price_of_pool
from capacity.usage.price_book import CAPACITY_TYPES
from edges.parts import part_response
from edges.requests import PersonRequest
from fleet.models import Pool
from fleet.queries import see_pools


@part_response
def pool_price_part(request: PersonRequest, pool_id: int) -> HttpResponse:
    pool = get_object_or_404(Pool.objects.visible_to(request.user), pk=pool_id)
    now = timezone.now()
    (row,) = see_pools([pool], user=request.user, now=now)
    found = price_of_pool(pool, request.user, row.tally.physical_gpus, day=now.date())
    kinds = [
        (kind, CAPACITY_TYPES.get(kind.capacity_type, ""), booked.price if booked else None)
        for kind, booked in found.in_force.items()
        if kind is not None
    ]
    kinds = kinds if any(price for *_, price in kinds) else []
    return render(request, "capacity/prices/_pool.html", {"found": found, "kinds": kinds, "tally": row.tally})
