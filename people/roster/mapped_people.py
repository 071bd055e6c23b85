"""People of an identity provider: their account, and roles that follow their groups."""

from dataclasses import dataclass
from datetime import datetime

from allauth.socialaccount.models import SocialAccount
from django.db import transaction

from people.models import User
from people.places import Place, all_places
from people.roster import accounts

ACTOR = "single sign-on"


@dataclass(frozen=True)
class ProviderIdentity:
    issuer: str
    subject: str  # unique and permanent at the issuer, unlike the name
    name: str


@transaction.atomic
def admit(identity: ProviderIdentity, roles: frozenset[tuple[str, Place]], *, now: datetime) -> User | None:
    """Returns the person with exactly these roles. None: no roles and no account, so none is made.

    An account of the same name that the identity does not own is never taken over.

    :raises NameTaken: when another person has the name
    :raises ValidationError: when the name is invalid
    :raises LastAdmin: when nobody would be left who can give roles
    """
    owned = SocialAccount.objects.filter(provider=identity.issuer, uid=identity.subject).select_related("user").first()
    if owned is None and not roles:
        return None
    person: User = owned.user if owned else accounts.add(identity.name, actor=ACTOR, now=now)
    if owned is None:
        SocialAccount.objects.create(user=person, provider=identity.issuer, uid=identity.subject)
    _set_roles(person, roles, now=now)
    return person


def _set_roles(person: User, roles: frozenset[tuple[str, Place]], *, now: datetime) -> None:
    wanted = {(role, place.scope, place.key): (role, place) for role, place in roles}
    current = {(item.role, item.scope, item.scope_id): item for item in person.bindings.all()}
    places = {(place.scope, place.key): place for place in all_places()}
    for key in wanted.keys() - current.keys():
        role, place = wanted[key]
        accounts.grant(person, role, place, actor=ACTOR, now=now)
    for key in current.keys() - wanted.keys():
        binding = current[key]
        accounts.end_role(binding, places.get((binding.scope, binding.scope_id)), actor=ACTOR, now=now)
