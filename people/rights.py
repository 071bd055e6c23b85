"""Who may do what, and where. The one place that turns roles into yes and no."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from django.contrib.auth.models import AnonymousUser
from django.db.models import Q

from people.models import Role, User
from people.models.user import ScopeKind
from people.places import Place, every_place


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


class NotAllowed(Exception):
    """The caller may see this, but not do that to it."""


@dataclass(frozen=True)
class Scope:
    """Where somebody has one permission."""

    everywhere: bool = False
    cluster_ids: frozenset[int] = frozenset()
    pool_ids: frozenset[int] = frozenset()

    @property
    def nowhere(self) -> bool:
        return not (self.everywhere or self.cluster_ids or self.pool_ids)

    def covers_cluster(self, cluster_id: int) -> bool:
        return self.everywhere or cluster_id in self.cluster_ids


def scope_of(user: User | AnonymousUser, permission: Permission) -> Scope:
    """Costs one query. Nobody, and a token without the permission, have none."""
    if not isinstance(user, User) or not user.is_active:
        return Scope()
    if user.token is not None and permission not in user.token.permissions:
        return Scope()
    giving = [binding for binding in user.bindings.all() if binding.role in ROLES_FOR[permission]]
    places = {(binding.scope, binding.scope_id) for binding in giving}
    return Scope(
        everywhere=any(scope == ScopeKind.FLEET for scope, _ in places),
        cluster_ids=frozenset(key for scope, key in places if scope == ScopeKind.CLUSTER),
        pool_ids=frozenset(key for scope, key in places if scope == ScopeKind.POOL),
    )


def who_may(permission: Permission, *, cluster_id: int) -> set[str]:
    """Names of the people who may do this in a cluster, if they sign in. One query."""
    there = Q(bindings__scope=ScopeKind.FLEET) | Q(bindings__scope=ScopeKind.CLUSTER, bindings__scope_id=cluster_id)
    roles = [role.value for role in ROLES_FOR[permission]]
    people = User.objects.filter(there, is_active=True, bindings__role__in=roles)
    return set(people.values_list("username", flat=True))


OF: dict[Permission, str] = {
    Permission.SEE: "see this",
    Permission.DRAFT: "draft or change a plan",
    Permission.STOP: "halt or pause a plan, freeze or stop",
    Permission.RUN: "start, resume, abort or roll back a plan, take a node out of it, or lift a freeze",
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
    """Why the user may not do this there, in a sentence that names what is missing. Blank: they may.

    `cluster_id` None asks about the whole fleet; `pool_id` None about all of the cluster. `or_in` are pools of which
    one is enough: they are looked at only where the cluster is not. `where` is what the
    sentence calls the place: "cluster demo"; `what` is what it calls the act, where the permission's own words do not.
    """
    there = scope_of(user, permission)
    if there.everywhere or (cluster_id is not None and cluster_id in there.cluster_ids):
        return ""
    if pool_id is not None and pool_id in there.pool_ids:
        return ""
    if there.pool_ids and not there.pool_ids.isdisjoint(or_in):
        return ""
    if isinstance(user, User) and user.token is not None and permission not in user.token.permissions:
        return f"This token may not {what or OF[permission]}: it was issued without “{permission}”."
    return f"To {what or OF[permission]} you need the role {_listed(ROLES_FOR[permission])} on {where}."


def known_to(user: User | AnonymousUser) -> Scope:
    """Where somebody may know what there is: where they see or, by a token that only administers, administer."""
    sees, administers = scope_of(user, Permission.SEE), scope_of(user, Permission.ADMINISTER)
    return Scope(
        everywhere=sees.everywhere or administers.everywhere,
        cluster_ids=sees.cluster_ids | administers.cluster_ids,
        pool_ids=sees.pool_ids | administers.pool_ids,
    )


def places_known_to(user: User | AnonymousUser) -> list[Place]:
    """Where roles can be given, as far as somebody knows of it: with the cluster of each pool, and always the fleet."""
    there, places = known_to(user), every_place()
    pools = {
        each.key: each.cluster_id
        for each in places
        if each.scope == ScopeKind.POOL and (each.key in there.pool_ids or each.cluster_id in there.cluster_ids)
    }
    known = {ScopeKind.FLEET: {0}, ScopeKind.CLUSTER: there.cluster_ids | set(pools.values()), ScopeKind.POOL: pools}
    return [each for each in places if there.everywhere or each.key in known[ScopeKind(each.scope)]]


def may_administer(user: User | AnonymousUser, place: Place) -> bool:
    """Whether the user may give and take roles there: never beyond where they are admin themselves."""
    there = scope_of(user, Permission.ADMINISTER)
    if place.scope == ScopeKind.POOL and place.key in there.pool_ids:
        return True
    return there.everywhere or (place.cluster_id is not None and there.covers_cluster(place.cluster_id))


def require(
    user: User | AnonymousUser,
    permission: Permission,
    *,
    cluster_id: int | None = None,
    pool_id: int | None = None,
    where: str = "the fleet",
) -> None:
    """:raises NotAllowed: with the sentence of `why_not`"""
    if refusal := why_not(user, permission, cluster_id=cluster_id, pool_id=pool_id, where=where):
        raise NotAllowed(refusal)


def require_somewhere(user: User | AnonymousUser, permission: Permission) -> None:
    """:raises NotAllowed: unless there is a place where the user may do this"""
    if scope_of(user, permission).nowhere:
        raise NotAllowed(why_not(user, permission, where="the fleet, a cluster or a pool"))


def require_admin_of(user: User | AnonymousUser, place: Place) -> None:
    """:raises NotAllowed: unless the user may give and take roles there"""
    if not may_administer(user, place):
        raise NotAllowed(why_not(user, Permission.ADMINISTER, where=place.words))


def _listed(roles: frozenset[Role]) -> str:
    *most, last = [role.value for role in Role if role in roles]
    return f"{', '.join(most)} or {last}" if most else last
