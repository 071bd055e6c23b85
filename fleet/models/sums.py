"""The base of counter tables: rows of equal nodes, added up. `fleet.allocation.counters` updates them."""

from collections.abc import Collection
from functools import cache
from typing import Any, ClassVar, Self, TypeVar

from django.db import models
from django.db.models import Case, F, Q, Value, When

from fleet.models.visible import Visible

S = TypeVar("S", bound=models.Model)
# Like `reported_driver` of a node.
REPORTED_DRIVER_OF_SUMS = Case(When(is_driver_reported=True, then=F("driver_version")), default=Value(""))


class SumsQuerySet(Visible[S]):
    def in_pools(self, pool_ids: Collection[int]) -> Q:
        keys = "|".join(str(int(key)) for key in pool_ids)
        return Q(pools__regex=rf"(^|,)({keys})(,|$)") if keys else Q(pk__in=[])

    def in_pool(self, pool_id: int) -> Self:
        return self.filter(self.in_pools([pool_id]))


class AddedUp(models.Model):
    alike: ClassVar[tuple[str, ...]]  # columns that are equal within a row; the others are added up

    class Meta:
        abstract = True

    @classmethod
    @cache
    def added_up(cls) -> tuple[str, ...]:
        names = (field.name for field in cls._meta.concrete_fields)
        return tuple(name for name in names if name not in ("id", *cls.alike))


class Sums(AddedUp):
    is_of_gpu_nodes: ClassVar[bool] = False  # GPU nodes only

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="+")
    pools = models.TextField(blank=True)  # the keys of all pools they are in: 3,17; blank: in none
    driver_version = models.CharField(max_length=64, blank=True)
    is_driver_reported = models.BooleanField()  # False: the version is remembered, its label is away
    gpu_product = models.CharField(max_length=128, blank=True)
    nodes = models.IntegerField()
    uncounted = models.IntegerField()  # nodes with an unknown number of physical GPUs
    # A node may say that it has two billion, and there are others beside it.
    physical_whole = models.BigIntegerField()
    physical_mig = models.BigIntegerField()
    physical_partitioned = models.BigIntegerField()
    physical_time_slicing = models.BigIntegerField()
    physical_mps = models.BigIntegerField()
    physical_shared = models.BigIntegerField()
    physical_virtual = models.BigIntegerField()
    physical_not_offered = models.BigIntegerField()

    objects: Any  # each model has its own

    class Meta:
        abstract = True


def one_row_per_likeness(alike: tuple[str, ...], what: str) -> models.UniqueConstraint:
    return models.UniqueConstraint(fields=alike, name=f"one_row_of_{what}_per_likeness")


ALIKE = ("cluster", "pools", "is_gpu_node", "state_code", "driver_version", "is_driver_reported", "gpu_product")


class NodeSumsQuerySet(SumsQuerySet["NodeSums"]):
    """Rows are visible with their cluster, or with one of their pools."""


class NodeSums(Sums):
    alike = ALIKE

    is_gpu_node = models.BooleanField()
    state_code = models.IntegerField()

    ready = models.IntegerField()
    not_ready = models.IntegerField()
    readiness_unknown = models.IntegerField()
    unschedulable = models.IntegerField()
    held = models.IntegerField()
    gpus_named = models.IntegerField()  # nodes that reported their number of whole GPUs at least once
    gpus_named_now = models.IntegerField()
    # `fleet.allocation.amounts` defines each; `allocated` and `free` assume that pods were read.
    gpus_expected = models.BigIntegerField()
    gpus_allocatable = models.BigIntegerField()
    gpus_allocated = models.BigIntegerField()
    gpus_free = models.BigIntegerField()
    gpus_away = models.BigIntegerField()
    slices_expected = models.BigIntegerField()
    slices_allocatable = models.BigIntegerField()
    slices_allocated = models.BigIntegerField()
    slices_free = models.BigIntegerField()
    slices_away = models.BigIntegerField()
    shares_expected = models.BigIntegerField()
    shares_allocatable = models.BigIntegerField()
    shares_allocated = models.BigIntegerField()
    shares_free = models.BigIntegerField()
    shares_away = models.BigIntegerField()
    cpu_named = models.IntegerField()  # nodes that say how much they have
    memory_named = models.IntegerField()
    silent = models.IntegerField()  # nodes that do not say the one, the other or both
    cpu_allocatable_m = models.BigIntegerField()
    cpu_tenants_m = models.BigIntegerField()
    cpu_operands_m = models.BigIntegerField()
    cpu_others_m = models.BigIntegerField()
    memory_allocatable_bytes = models.BigIntegerField()
    memory_tenants_bytes = models.BigIntegerField()
    memory_operands_bytes = models.BigIntegerField()
    memory_others_bytes = models.BigIntegerField()

    objects = NodeSumsQuerySet.as_manager()

    class Meta:
        constraints = [one_row_per_likeness(ALIKE, "sums")]
