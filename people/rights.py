"""Permissions of people by place: the one module that turns roles into yes or no."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from django.contrib.auth.models import AnonymousUser
from django.db.models import Q

from people.models import Role, User
from people.models.user import ScopeKind
from people.places import Place, all_places


class Permission(StrEnum):
    SEE = "see"
    DRAFT = "draft"  # write and change plans that have not started
    STOP = "stop"  # halt, pause, freeze, act on findings
    RUN = "run"  # start, resume, abort, roll back, lift a freeze
    APPROVE = "approve"
    ADMINISTER = "administer"  # clusters, pools, people


ROLES_FOR: dict[Permission, frozenset[Role]] = {
    Permission.SEE: frozenset(Role),
    Permission.DRAFT: frozenset({Role.OPERATOR, Role.ADMIN}),
    Permission.STOP: frozenset({Role.OPERATOR, Role.APPROVER, Role.ADMIN}),
    Permission.RUN: frozenset({Role.OPERATOR, Role.ADMIN}),
    Permission.APPROVE: frozenset({Role.APPROVER, Role.ADMIN}),
    Permission.ADMINISTER: frozenset({Role.ADMIN}),
}


OF_TOKENS = tuple(permission for permission in Permission if permission is not Permission.APPROVE)


class NotAllowed(Exception):
    """The refusal of a caller who may see the object but not act on it."""


@dataclass(frozen=True)
class Scope:
    """The places where a person has one permission."""

    everywhere: bool = False
    cluster_ids: frozenset[int] = frozenset()
    pool_ids: frozenset[int] = frozenset()

    @property
    def nowhere(self) -> bool:
        return not (self.everywhere or self.cluster_ids or self.pool_ids)

    def covers_cluster(self, cluster_id: int) -> bool:
        return self.everywhere or cluster_id in self.cluster_ids


def scope_of(user: User | AnonymousUser, permission: Permission) -> Scope:
    """Returns the user's scope of one permission. Empty for anonymous users and for tokens without it. One query."""
    if not isinstance(user, User) or not user.is_active:
        return Scope()
    if user.token is not None and (permission not in OF_TOKENS or permission not in user.token.permissions):
        return Scope()
    granting = [binding for binding in user.bindings.all() if binding.role in ROLES_FOR[permission]]
    places = {(binding.scope, binding.scope_id) for binding in granting}
    return Scope(
        everywhere=any(scope == ScopeKind.FLEET for scope, _ in places),
        cluster_ids=frozenset(key for scope, key in places if scope == ScopeKind.CLUSTER),
        pool_ids=frozenset(key for scope, key in places if scope == ScopeKind.POOL),
    )


def people_with_permission(permission: Permission, *, cluster_id: int) -> set[str]:
    """Returns the names of active people who have this permission in a cluster. One query."""
    place = Q(bindings__scope=ScopeKind.FLEET) | Q(bindings__scope=ScopeKind.CLUSTER, bindings__scope_id=cluster_id)
    roles = [role.value for role in ROLES_FOR[permission]]
    people = User.objects.filter(place, is_active=True, bindings__role__in=roles)
    return set(people.values_list("username", flat=True))


ACTS: dict[Permission, str] = {
    Permission.SEE: "see this",
    Permission.DRAFT: "draft or change a plan",
    Permission.STOP: "halt or pause a plan, freeze or stop",
    Permission.RUN: "start, resume, abort or roll back a plan, exclude a node from it, or lift a freeze",
    Permission.APPROVE: "approve or reject a stage",
    Permission.ADMINISTER: "change clusters, pools or people",
}


def why_not(
    user: User | AnonymousUser,
    permission: Permission,
    *,
    cluster_id: int | None = None,
    pool_id: int | None = None,
    or_in: Iterable[int] = (),
    where: str = "the fleet",
    what: str = "",
) -> str:
    """Returns why the user lacks a permission, as a sentence. Blank: the user has it.

    `cluster_id` None means the whole fleet; `pool_id` None means the whole cluster. `or_in` lists pools; the
    permission on one of them is enough. `where` names the place in the sentence, as in "cluster demo"; `what` names
    the act.
    """
    scope = scope_of(user, permission)
    if scope.everywhere or (cluster_id is not None and cluster_id in scope.cluster_ids):
        return ""
    if pool_id is not None and pool_id in scope.pool_ids:
        return ""
    if scope.pool_ids and not scope.pool_ids.isdisjoint(or_in):
        return ""
    if isinstance(user, User) and user.token is not None and permission not in OF_TOKENS:
        return f"A token may not {what or ACTS[permission]}. A person must sign in for that."
    if isinstance(user, User) and user.token is not None and permission not in user.token.permissions:
        return f"This token may not {what or ACTS[permission]}: it was issued without “{permission}”."
    return f"To {what or ACTS[permission]} you need the role {_roles_text(ROLES_FOR[permission])} on {where}."


def known_to(user: User | AnonymousUser) -> Scope:
    """Returns the places a person may know: those they see, or administer with a token that only administers."""
    sees, administers = scope_of(user, Permission.SEE), scope_of(user, Permission.ADMINISTER)
    return Scope(
        everywhere=sees.everywhere or administers.everywhere,
        cluster_ids=sees.cluster_ids | administers.cluster_ids,
        pool_ids=sees.pool_ids | administers.pool_ids,
    )


def places_known_to(user: User | AnonymousUser) -> list[Place]:
    """Returns the places a person may know: always the fleet, and for each known pool also its cluster."""
    scope, places = known_to(user), all_places()
    pools = {
        place.key: place.cluster_id
        for place in places
        if place.scope == ScopeKind.POOL and (place.key in scope.pool_ids or place.cluster_id in scope.cluster_ids)
    }
    known = {ScopeKind.FLEET: {0}, ScopeKind.CLUSTER: scope.cluster_ids | set(pools.values()), ScopeKind.POOL: pools}
    return [place for place in places if scope.everywhere or place.key in known[ScopeKind(place.scope)]]


def may_administer(user: User | AnonymousUser, place: Place) -> bool:
    """Tells whether the user may give and take roles on a place: only where they are admin themselves."""
    scope = scope_of(user, Permission.ADMINISTER)
    if place.scope == ScopeKind.POOL and place.key in scope.pool_ids:
        return True
    return scope.everywhere or (place.cluster_id is not None and scope.covers_cluster(place.cluster_id))


def require(
    user: User | AnonymousUser,
    permission: Permission,
    *,
    cluster_id: int | None = None,
    pool_id: int | None = None,
    where: str = "the fleet",
) -> None:
    """Refuses a user who lacks the permission.

    :raises NotAllowed: with the sentence of `why_not`
    """
    if refusal := why_not(user, permission, cluster_id=cluster_id, pool_id=pool_id, where=where):
        raise NotAllowed(refusal)


def require_somewhere(user: User | AnonymousUser, permission: Permission) -> None:
    """Refuses a user who has the permission nowhere.

    :raises NotAllowed: when no place is left
    """
    if scope_of(user, permission).nowhere:
        raise NotAllowed(why_not(user, permission, where="the fleet, a cluster or a pool"))


def require_admin_of(user: User | AnonymousUser, place: Place) -> None:
    """Refuses a user who may not give roles on a place.

    :raises NotAllowed: when the user is not its admin
    """
    if not may_administer(user, place):
        raise NotAllowed(why_not(user, Permission.ADMINISTER, where=place.words))


def _roles_text(roles: frozenset[Role]) -> str:
    *most, last = [role.value for role in Role if role in roles]
    return f"{', '.join(most)} or {last}" if most else last
