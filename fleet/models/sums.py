"""What every table of sums has: rows of nodes that are alike, added up. `fleet.allocation.counters` keeps them."""

from collections.abc import Collection
from functools import cache
from typing import Any, ClassVar, Self, TypeVar

from django.db import models
from django.db.models import Case, F, Q, Value, When

from fleet.models.visible import Visible

S = TypeVar("S", bound=models.Model)
# As `said_driver` of a node.
SAID_DRIVER_OF_SUMS = Case(When(is_driver_said=True, then=F("driver_version")), default=Value(""))


class SumsQuerySet(Visible[S]):
    def in_pools(self, pool_ids: Collection[int]) -> Q:
        keys = "|".join(str(int(key)) for key in pool_ids)
        return Q(pools__regex=rf"(^|,)({keys})(,|$)") if keys else Q(pk__in=[])

    def in_pool(self, pool_id: int) -> Self:
        return self.filter(self.in_pools([pool_id]))


class Sums(models.Model):
    """Nodes of a cluster that are alike."""

    alike: ClassVar[tuple[str, ...]]  # what nodes must have in common to be one row; the other columns are added up
    is_of_gpu_nodes: ClassVar[bool] = False  # of no others

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="+")
    nodes = models.IntegerField()

    objects: Any  # each has its own

    class Meta:
        abstract = True

    @classmethod
    @cache
    def added_up(cls) -> tuple[str, ...]:
        names = (field.name for field in cls._meta.concrete_fields)
        return tuple(name for name in names if name not in ("id", *cls.alike))


def one_row_per_likeness(alike: tuple[str, ...], what: str) -> models.UniqueConstraint:
    return models.UniqueConstraint(fields=alike, name=f"one_row_of_{what}_per_likeness")
