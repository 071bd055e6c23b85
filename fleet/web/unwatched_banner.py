"""The banner of unwatched clusters on every page, updated live."""

from dataclasses import dataclass
from datetime import datetime

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.functional import SimpleLazyObject

from edges.parts import part_response
from edges.requests import PersonRequest
from fleet.freshness.observation_state import unwatched_since_of
from fleet.freshness.threads import threads
from fleet.models import Cluster

NAMED = 3


@dataclass(frozen=True)
class Unwatched:
    first: list[tuple[Cluster, datetime | None]]  # with the start time
    more: int
    action: str


def unwatched(request: HttpRequest) -> dict[str, object]:
    """Adds the banner to templates. One query when used; two more while shown."""
    return {"unwatched": SimpleLazyObject(lambda: _unwatched(request.user, now=timezone.now()))}


@part_response
def unwatched_part(request: PersonRequest) -> HttpResponse:
    return render(request, "fleet/layout/_unwatched.html")


def _unwatched(user, *, now: datetime) -> Unwatched:
    found = list(Cluster.objects.visible_to(user).unwatched(now=now))
    first = [(each, _unwatched_since(each, now)) for each in found[:NAMED]]
    return Unwatched(first, more=len(found) - len(first), action=threads(now=now).action if first else "")


def _unwatched_since(cluster: Cluster, now: datetime) -> datetime | None:
    return unwatched_since_of(getattr(cluster, "observer", None), added_at=cluster.added_at, now=now)
