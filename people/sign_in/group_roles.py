"""Roles from the groups of an identity provider's claims."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings

from people.models import GroupMapping
from people.places import Place, all_places
from people.sign_in.single_sign_on import SignInRefused

OVERAGE = ("_claim_names", "hasgroups")  # of Entra ID, with more than 200 groups


def roles_in(claims: Mapping[str, Any]) -> frozenset[tuple[str, Place]]:
    """Returns the roles of a person's groups, by the settings and by the group mapping. Empty: no group is mapped.

    :raises SignInRefused: when the claims have no groups
    """
    groups, places = _groups_in(claims), all_places()
    by_name = {place.name: place for place in places}
    by_key = {(place.scope, place.key): place for place in places}
    given = [(item.role, by_name.get(item.place)) for item in settings.OIDC.roles if item.group in groups]
    mapped = GroupMapping.objects.filter(group__in=groups)
    given += [(item.role, by_key.get((item.scope, item.scope_id))) for item in mapped]
    return frozenset((role, place) for role, place in given if place)


def _groups_in(claims: Mapping[str, Any]) -> frozenset[str]:
    path = settings.OIDC.groups_claim
    value: Any = claims
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    if value is None and any(name in claims for name in OVERAGE):
        raise SignInRefused(
            "You are in more groups than the identity provider sends. "
            "Ask its admin to send only the groups that are assigned to this application, or app roles."
        )
    if not isinstance(value, list):
        raise SignInRefused(f"The identity provider sent no list of groups in “{path}”. Ask its admin to add it.")
    return frozenset(str(group) for group in value)
