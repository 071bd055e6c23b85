"""Who may do what, and where. The one place that turns roles into yes and no."""

from dataclasses import dataclass
from enum import StrEnum

from django.contrib.auth.models import AnonymousUser
from django.db.models import Q

from people.models import Role, User
from people.models.role_binding import Scope
from people.places import Place


class Deed(StrEnum):
    SEE = "see"
    DRAFT = "draft"  # write and change plans that have not started
    STOP = "stop"  # halt, pause
    RUN = "run"  # start, resume, abort, roll back
    APPROVE = "approve"
    ADMINISTER = "administer"  # clusters, pools, people


ROLES_FOR: dict[Deed, frozenset[Role]] = {
    Deed.SEE: frozenset(Role),
    Deed.DRAFT: frozenset({Role.OPERATOR, Role.ADMIN}),
    Deed.STOP: frozenset({Role.OPERATOR, Role.APPROVER, Role.ADMIN}),
    Deed.RUN: frozenset({Role.OPERATOR, Role.ADMIN}),
    Deed.APPROVE: frozenset({Role.APPROVER, Role.ADMIN}),
    Deed.ADMINISTER: frozenset({Role.ADMIN}),
}


class NotAllowed(Exception):
    """The caller may see this, but not do that to it."""


@dataclass(frozen=True)
class Reach:
    """Where somebody may do one deed."""

    everywhere: bool = False
    cluster_ids: frozenset[int] = frozenset()
    pool_ids: frozenset[int] = frozenset()

    @property
    def nowhere(self) -> bool:
        return not (self.everywhere or self.cluster_ids or self.pool_ids)

    def covers_cluster(self, cluster_id: int) -> bool:
        return self.everywhere or cluster_id in self.cluster_ids


def reach(user: User | AnonymousUser, deed: Deed) -> Reach:
    """Costs one query. Nobody, and a token without the deed, reach nothing."""
    if not isinstance(user, User) or not user.is_active:
        return Reach()
    if user.token is not None and deed not in user.token.deeds:
        return Reach()
    places = {(binding.scope, binding.scope_id) for binding in user.bindings.all() if binding.role in ROLES_FOR[deed]}
    return Reach(
        everywhere=any(scope == Scope.FLEET for scope, _ in places),
        cluster_ids=frozenset(key for scope, key in places if scope == Scope.CLUSTER),
        pool_ids=frozenset(key for scope, key in places if scope == Scope.POOL),
    )


def who_may(deed: Deed, *, cluster_id: int) -> set[str]:
    """Names of the people who may do this in a cluster, if they sign in. One query."""
    there = Q(bindings__scope=Scope.FLEET) | Q(bindings__scope=Scope.CLUSTER, bindings__scope_id=cluster_id)
    people = User.objects.filter(there, is_active=True, bindings__role__in=[role.value for role in ROLES_FOR[deed]])
    return set(people.values_list("username", flat=True))


OF: dict[Deed, str] = {
    Deed.SEE: "see this",
    Deed.DRAFT: "draft or change a plan",
    Deed.STOP: "halt or pause a plan",
    Deed.RUN: "start, resume, abort or roll back a plan, or take a node out of it",
    Deed.APPROVE: "approve or reject a stage",
    Deed.ADMINISTER: "change clusters, pools or people",
}


def why_not(user: User | AnonymousUser, deed: Deed, *, cluster_id: int | None = None, where: str = "the fleet") -> str:
    """Why the user may not do this there, in a sentence that names what is missing. Blank: they may.

    `cluster_id` None asks about the whole fleet. `where` is what the sentence calls the place: "cluster demo".
    """
    there = reach(user, deed)
    if there.everywhere or (cluster_id is not None and cluster_id in there.cluster_ids):
        return ""
    if isinstance(user, User) and user.token is not None and deed not in user.token.deeds:
        return f"This token may not {OF[deed]}: it was issued without “{deed}”."
    return f"To {OF[deed]} you need the role {_listed(ROLES_FOR[deed])} on {where}."


def may_administer(user: User | AnonymousUser, place: Place) -> bool:
    """Whether the user may give and take roles there: never beyond where they are admin themselves."""
    there = reach(user, Deed.ADMINISTER)
    if place.scope == Scope.POOL and place.key in there.pool_ids:
        return True
    return there.everywhere or (place.cluster_id is not None and there.covers_cluster(place.cluster_id))


def require(user: User | AnonymousUser, deed: Deed, *, cluster_id: int | None = None, where: str = "the fleet") -> None:
    """:raises NotAllowed: with the sentence of `why_not`"""
    if refusal := why_not(user, deed, cluster_id=cluster_id, where=where):
        raise NotAllowed(refusal)


def require_somewhere(user: User | AnonymousUser, deed: Deed) -> None:
    """:raises NotAllowed: unless there is a place where the user may do this"""
    if reach(user, deed).nowhere:
        raise NotAllowed(why_not(user, deed, where="the fleet, a cluster or a pool"))


def require_admin_of(user: User | AnonymousUser, place: Place) -> None:
    """:raises NotAllowed: unless the user may give and take roles there"""
    if not may_administer(user, place):
        raise NotAllowed(why_not(user, Deed.ADMINISTER, where=place.words))


def _listed(roles: frozenset[Role]) -> str:
    *most, last = [role.value for role in Role if role in roles]
    return f"{', '.join(most)} or {last}" if most else last
