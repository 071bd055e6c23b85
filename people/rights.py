"""Who may do what, and where. The one place that turns roles into yes and no."""

from dataclasses import dataclass
from enum import StrEnum

from django.contrib.auth.models import AnonymousUser

from people.models import Role, User
from people.models.role_binding import Scope


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
