"""People and their roles, for pages and REST."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from allauth.socialaccount.models import SocialAccount
from django.db.models import Exists, OuterRef, Prefetch, QuerySet

from people.models import ApiToken, RoleBinding, User
from people.places import Place, all_places
from people.rights import Permission, known_to, places_known_to, scope_of


@dataclass(frozen=True)
class GivenRole:
    binding: RoleBinding
    place: Place | None  # None: the place was removed


@dataclass(frozen=True)
class PersonRow:
    person: User
    roles: Sequence[GivenRole]


def everybody() -> QuerySet[User]:
    """Returns all people, with `is_single`: they sign in at the identity provider."""
    single = Exists(SocialAccount.objects.filter(user=OuterRef("pk")))
    people = User.objects.annotate(is_single=single).order_by("-is_active", "username")
    return people.prefetch_related(Prefetch("bindings", RoleBinding.objects.order_by("pk")))


def has_single_sign_on(person: User) -> bool:
    """Returns whether the person signs in at the identity provider."""
    return SocialAccount.objects.filter(user=person).exists()


class RolesKnownTo:
    """The roles a person may know of: those on places known to them. A person who knows the fleet also sees removed
    places."""

    def __init__(self, by: User) -> None:
        """Loads the places. Four queries for a user whose bindings are not loaded."""
        self.places = {(place.scope, place.key): place for place in places_known_to(by)}
        self.are_all = known_to(by).everywhere

    def of(self, binding: RoleBinding) -> GivenRole | None:
        """Returns the role with its place. None: unknown to this person."""
        return next(iter(self.among([binding])), None)

    def among(self, bindings: Iterable[RoleBinding]) -> list[GivenRole]:
        given = [GivenRole(item, self.places.get((item.scope, item.scope_id))) for item in bindings]
        return [item for item in given if item.place is not None or self.are_all]


def roles_of(person: User) -> list[GivenRole]:
    """Returns all roles of a person, for themselves. Two queries when the bindings are loaded."""
    places = {(place.scope, place.key): place for place in all_places()}
    return [GivenRole(item, places.get((item.scope, item.scope_id))) for item in person.bindings.all()]


def see_people(people: Iterable[User], roles: RolesKnownTo) -> list[PersonRow]:
    """Returns a row per person. Needs loaded bindings; makes no query."""
    return [PersonRow(item, roles.among(item.bindings.all())) for item in people]


def may_see_tokens(person: User, by: User) -> bool:
    """Tells whether a person may see the tokens: their own, or any as admin of the fleet."""
    return person.pk == by.pk or scope_of(by, Permission.ADMINISTER).everywhere


def tokens_of(person: User) -> QuerySet[ApiToken]:
    """Returns the active tokens, newest first."""
    return ApiToken.objects.filter(user=person, revoked_at__isnull=True).order_by("-created_at", "-pk")
