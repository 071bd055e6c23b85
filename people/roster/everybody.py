"""Everybody there is and what they may do where, for pages and REST alike."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db.models import Prefetch, QuerySet

from people.models import ApiToken, RoleBinding, User
from people.places import Place, every_place
from people.rights import Permission, known_to, places_known_to, scope_of


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


class RolesKnownTo:
    """Those that somebody may know of: on what they know is there. Whoever knows the fleet knows also what is gone."""

    def __init__(self, by: User) -> None:
        """Four queries, of somebody without their bindings."""
        self.places = {(place.scope, place.key): place for place in places_known_to(by)}
        self.are_all = known_to(by).everywhere

    def of(self, binding: RoleBinding) -> GivenRole | None:
        """None: they know of no such role."""
        return next(iter(self.among([binding])), None)

    def among(self, bindings: Iterable[RoleBinding]) -> list[GivenRole]:
        found = [GivenRole(each, self.places.get((each.scope, each.scope_id))) for each in bindings]
        return [each for each in found if each.place is not None or self.are_all]


def roles_of(person: User) -> list[GivenRole]:
    """All of them, for themselves. Two queries, of somebody with their bindings."""
    there = {(place.scope, place.key): place for place in every_place()}
    return [GivenRole(each, there.get((each.scope, each.scope_id))) for each in person.bindings.all()]


def see_people(people: Iterable[User], roles: RolesKnownTo) -> list[PersonRow]:
    """Of people with their bindings. Asks no database."""
    return [PersonRow(each, roles.among(each.bindings.all())) for each in people]


def may_see_tokens(person: User, by: User) -> bool:
    """Their own, and whoever may revoke them."""
    return person.pk == by.pk or scope_of(by, Permission.ADMINISTER).everywhere


def tokens_of(person: User) -> QuerySet[ApiToken]:
    """Those that are not revoked, the newest first."""
    return ApiToken.objects.filter(user=person, revoked_at__isnull=True).order_by("-created_at", "-pk")
