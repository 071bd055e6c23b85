"""Roles from the groups of an identity provider's claims."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings

from people.places import Place, named
from people.sign_in.single_sign_on import SignInRefused

OVERAGE = ("_claim_names", "hasgroups")  # of Entra ID, with more than 200 groups


def roles_in(claims: Mapping[str, Any]) -> frozenset[tuple[str, Place]]:
    """Returns the roles of a person's groups. Empty: no group is mapped. Costs the queries of places.

    :raises SignInRefused: when the claims have no groups
    """
    groups = _groups_in(claims)
    wanted = {(item.role, item.place) for item in settings.OIDC.roles if item.group in groups}
    places = {name: named(name) for name in {name for _, name in wanted}}
    return frozenset((role, place) for role, name in wanted if (place := places[name]))


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
