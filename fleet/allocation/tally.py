"""Counts over nodes. None where nobody knows: a cluster that was never listed does not have zero nodes."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from django.db.models import Case, Count, F, Q, QuerySet, Value, When

from fleet.allocation.amounts import AMOUNT_SUMS, KINDS, GpuAmount
from fleet.allocation.physical import PHYSICAL_SUMS, Physical
from gpu.resources import Uses

COUNTS = ("nodes", "gpu_nodes", "ready", "not_ready", "readiness_unknown", "unschedulable", "held")
# What a node says of its driver now: a version whose label is gone counts as unknown, however well it is remembered.
SAID_DRIVER = Case(When(driver_unknown_since=None, then=F("driver_version")), default=Value(""))


@dataclass(frozen=True)
class VersionCount:
    version: str  # blank: no node has said
    nodes: int


@dataclass(frozen=True)
class Tally:
    """Of GPU nodes, but for `nodes`, which counts all.

    `physical_gpus` are boards. `gpus_…` are those with one user: no slice or share is among them.
    """

    nodes: int | None = 0
    gpu_nodes: int | None = 0
    ready: int | None = 0
    not_ready: int | None = 0
    readiness_unknown: int | None = 0  # the kubelet stopped reporting
    unschedulable: int | None = 0
    held: int | None = 0
    physical_gpus: int | None = 0
    physical_gpus_by_use: Uses | None = field(default_factory=dict)
    uncounted_nodes: int | None = 0  # GPU nodes of which nobody says how many GPUs they have
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
            named=Count("gpu_expected"),
            named_now=Count("gpu_allocatable"),
            **PHYSICAL_SUMS,
            **AMOUNT_SUMS,
        )
    )
    versions = _versions(nodes.filter(gpu), by=by)
    return {row[by]: _tally(row, by, versions) for row in counted if row[by] is not None}


def _tally(row: Mapping[str, Any], by: str, versions: Mapping[int, list[VersionCount]]) -> Tally:
    """Of whole GPUs none are unknown, not zero, where there are GPU nodes and none of them ever named any."""
    physical = Physical.of(row)
    numbers = {
        f"{kind}_{name}": getattr(GpuAmount.of(row, kind), name)
        for kind in KINDS
        for name in ("expected", "allocatable", "allocated", "missing")
    }
    if row["gpu_nodes"] and not row["named"]:
        numbers |= {"gpus_expected": None, "gpus_missing": None}
    if row["gpu_nodes"] and not row["named_now"]:
        numbers |= {"gpus_allocatable": None}
    return Tally(
        **{name: row[name] for name in COUNTS},
        physical_gpus=physical.total if physical.total or not physical.uncounted else None,
        physical_gpus_by_use=physical.uses,
        uncounted_nodes=physical.uncounted,
        driver_versions=tuple(versions.get(row[by], ())),
        **numbers,
    )


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
