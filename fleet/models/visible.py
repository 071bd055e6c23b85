"""Visibility of rows: by cluster, and by pool where a model allows it."""

from collections.abc import Collection
from typing import Self, TypeVar

from django.db import models
from django.db.models import Q

from people.rights import Permission, Scope, scope_of

M = TypeVar("M", bound=models.Model)


class Visible(models.QuerySet[M]):
    """Rows visible with their cluster; models may add pools."""

    by_cluster = "cluster"  # path from a row to its cluster

    def visible_to(self, user) -> Self:
        return self.seen_within(scope_of(user, Permission.SEE))

    def seen_within(self, seen: Scope) -> Self:
        if seen.everywhere:
            return self
        return self.filter(Q(**{f"{self.by_cluster}__in": seen.cluster_ids}) | self.in_pools(seen.pool_ids))

    def in_pools(self, _pool_ids: Collection[int]) -> Q:
        return Q()
