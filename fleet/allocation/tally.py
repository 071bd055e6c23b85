"""Counts over nodes. None where nobody knows: a cluster that was never listed does not have zero nodes."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from django.db.models import Case, Count, F, IntegerField, Q, QuerySet, Sum, Value, When
from django.db.models.functions import Coalesce, Greatest

from fleet.node_state import RECONFIGURING

# The MIG manager is at work, in its time: nothing is missing.
IS_RECONFIGURING = Q(mig_config_state__in=sorted(RECONFIGURING), mig_is_overdue=False)


def _short(of: str) -> Case:
    short = Greatest(Coalesce(F(f"{of}_expected"), Value(0)) - Coalesce(F(f"{of}_allocatable"), Value(0)), Value(0))
    return Case(When(IS_RECONFIGURING, then=Value(0)), default=short, output_field=IntegerField())


GPUS_MISSING = _short("gpu")  # whole ones
SLICES_MISSING, SHARES_MISSING = _short("slices"), _short("shares")
UNITS_MISSING = GPUS_MISSING + SLICES_MISSING + SHARES_MISSING  # as Node.gpus_missing: of one node, never a sum
LACKS_UNITS = ~IS_RECONFIGURING & (
    Q(gpu_expected__gt=Coalesce(F("gpu_allocatable"), 0))
    | Q(slices_expected__gt=F("slices_allocatable"))
    | Q(shares_expected__gt=F("shares_allocatable"))
)
PARTS = tuple(f"{kind}_{what}" for kind in ("slices", "shares") for what in ("expected", "allocatable", "allocated"))
SUM_OF = "sum_of_"  # an aggregate may not be named as its column
# What a node says of its driver now: a version whose label is gone counts as unknown, however well it is remembered.
SAID_DRIVER = Case(When(driver_unknown_since=None, then=F("driver_version")), default=Value(""))


@dataclass(frozen=True)
class VersionCount:
    version: str  # blank: no node has said
    nodes: int


@dataclass(frozen=True)
class Tally:
    """Of GPU nodes, but for `nodes`, which counts all. `gpus_…` are whole ones: no slice or share is among them."""

    nodes: int | None = 0
    gpu_nodes: int | None = 0
    ready: int | None = 0
    not_ready: int | None = 0
    readiness_unknown: int | None = 0  # the kubelet stopped reporting
    unschedulable: int | None = 0
    held: int | None = 0
    gpus_expected: int | None = 0
    gpus_allocatable: int | None = 0
    gpus_allocated: int | None = 0  # None also where pods cannot be read
    gpus_missing: int | None = 0
    slices_expected: int | None = 0  # MIG slices and partitions
    slices_allocatable: int | None = 0
    slices_allocated: int | None = 0
    slices_missing: int | None = 0
    shares_expected: int | None = 0  # by any way of sharing
    shares_allocatable: int | None = 0
    shares_allocated: int | None = 0
    shares_missing: int | None = 0
    driver_versions: tuple[VersionCount, ...] = ()

    def as_known(self, *, nodes: bool, pods: bool) -> "Tally":
        """Without the numbers that rest on what was never seen."""
        if not nodes:
            return UNKNOWN
        return self if pods else replace(self, gpus_allocated=None, slices_allocated=None, shares_allocated=None)


UNKNOWN = Tally(**{each.name: None for each in fields(Tally) if each.name != "driver_versions"})  # type: ignore[arg-type]
NOTHING = Tally()


def tallies(nodes: QuerySet, *, by: str) -> dict[int, Tally]:
    """By cluster or pool key (`by` = "cluster" or "pools"). Two queries, whatever the size."""
    gpu = Q(is_gpu_node=True)
    counted = (
        nodes.order_by()
        .values(by)
        .annotate(
            nodes=Count("pk"),
            gpu_nodes=Count("pk", filter=gpu),
            ready=Count("pk", filter=gpu & Q(is_ready=True)),
            not_ready=Count("pk", filter=gpu & Q(is_ready=False)),
            readiness_unknown=Count("pk", filter=gpu & Q(is_ready=None)),
            unschedulable=Count("pk", filter=gpu & Q(is_unschedulable=True)),
            held=Count("pk", filter=gpu & Q(is_held=True)),
            gpus_expected=Sum("gpu_expected"),
            gpus_allocatable=Sum("gpu_allocatable"),
            gpus_allocated=Sum("gpu_allocated"),
            gpus_missing=Sum(GPUS_MISSING, filter=~Q(gpu_expected=None)),
            **{SUM_OF + name: Coalesce(Sum(name), 0) for name in PARTS},
            slices_missing=Coalesce(Sum(SLICES_MISSING), 0),
            shares_missing=Coalesce(Sum(SHARES_MISSING), 0),
        )
    )
    versions = _versions(nodes.filter(gpu), by=by)
    return {row[by]: _tally(row, by, versions) for row in counted if row[by] is not None}


def _tally(row: Mapping[str, Any], by: str, versions: Mapping[int, list[VersionCount]]) -> Tally:
    """A sum of nothing is None: zero where there is no GPU node, unknown where those there are say nothing."""
    none = None if row["gpu_nodes"] else 0
    numbers = {
        name.removeprefix(SUM_OF): none if number is None else number for name, number in row.items() if name != by
    }
    return Tally(**numbers, driver_versions=tuple(versions.get(row[by], ())))


def _versions(nodes: QuerySet, *, by: str) -> dict[int, list[VersionCount]]:
    """The most common first."""
    rows = (
        nodes.order_by()
        .annotate(said=SAID_DRIVER)
        .values(by, "said")
        .annotate(number=Count("pk"))
        .order_by("-number", "said")
    )
    found: dict[int, list[VersionCount]] = {}
    for row in rows:
        found.setdefault(row[by], []).append(VersionCount(row["said"], row["number"]))
    return found
