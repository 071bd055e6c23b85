"""Which rows a user may see: those of the clusters that are seen whole, and what is seen with a pool."""

from collections.abc import Collection
from typing import Self, TypeVar

from django.db import models
from django.db.models import Q

from people.rights import Permission, Scope, scope_of

M = TypeVar("M", bound=models.Model)


class Visible(models.QuerySet[M]):
    """A row is seen with its cluster; one that says so, with its pools as well."""

    by_cluster = "cluster"  # the way from a row to its cluster

    def visible_to(self, user) -> Self:
        return self.seen_within(scope_of(user, Permission.SEE))

    def seen_within(self, seen: Scope) -> Self:
        if seen.everywhere:
            return self
        return self.filter(Q(**{f"{self.by_cluster}__in": seen.cluster_ids}) | self.in_pools(seen.pool_ids))

    def in_pools(self, _pool_ids: Collection[int]) -> Q:
        """What else is seen by who sees these pools."""
        return Q()
