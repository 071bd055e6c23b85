"""Everybody there is and what they may do where, for pages and REST alike."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db.models import Prefetch, QuerySet

from people.models import ApiToken, RoleBinding, User
from people.places import Place, every_place


@dataclass(frozen=True)
class GivenRole:
    binding: RoleBinding
    place: Place | None  # None: what it was given on is gone


@dataclass(frozen=True)
class PersonRow:
    person: User
    roles: Sequence[GivenRole]


def everybody() -> QuerySet[User]:
    return User.objects.order_by("-is_active", "username").prefetch_related(
        Prefetch("bindings", RoleBinding.objects.order_by("pk"))
    )


def see_people(people: Iterable[User]) -> list[PersonRow]:
    """Two queries for people with their bindings: what roles are given on."""
    there = {(place.scope, place.key): place for place in every_place()}
    return [
        PersonRow(each, [GivenRole(b, there.get((b.scope, b.scope_id))) for b in each.bindings.all()])
        for each in people
    ]


def tokens_of(person: User) -> QuerySet[ApiToken]:
    """Those that are not revoked, the newest first."""
    return ApiToken.objects.filter(user=person, revoked_at__isnull=True).order_by("-created_at", "-pk")
