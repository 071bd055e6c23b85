"""Whole GPUs, slices and shares of some part of the fleet, counted in the database: the one place that adds them up.

Of each: expected = allocated + free + unusable + unread + missing + away. What a pod has and the node lost is
missing, not allocated; what is away while the MIG manager is at work is neither; unread is what nobody knows to be
allocated or free, as the pods of its cluster were never read.
"""

from dataclasses import dataclass, replace

from django.db.models import F, Q, Sum
from django.db.models.functions import Coalesce, Greatest, Least

from fleet.models import Bookmark, Node
from fleet.models.state_column import IS_RECONFIGURING
from kube.resources import PODS

AMOUNT_COLUMNS = {"gpus": "gpu", "slices": "slices", "shares": "shares"}  # by the word for many: how columns begin
TAKES_PODS = Q(is_ready=True, is_unschedulable=False)
PODS_READ = Bookmark.objects.known(PODS.name)


@dataclass(frozen=True)
class GpuAmount:
    """`free` can be had now: on a ready node that takes pods. None of it and of `allocated`: nobody knows of any."""

    expected: int | None = 0  # None, and of `allocatable` and `away`: no node ever named any
    allocatable: int | None = 0
    allocated: int | None = 0
    free: int | None = 0
    unread: int = 0  # allocatable, and no pods were ever read where they are
    away: int | None = 0  # the MIG manager cuts them anew

    @property
    def missing(self) -> int | None:
        return None if self.expected is None else self.expected - (self.allocatable or 0) - (self.away or 0)

    @property
    def unusable(self) -> int:
        """Allocatable, not allocated, and yet not to be had: cordoned or not ready."""
        return (self.allocatable or 0) - self.unread - (self.allocated or 0) - (self.free or 0)

    def without_pods(self) -> "GpuAmount":
        return replace(self, allocated=None, free=None)


def _of(column: str) -> Coalesce:
    return Coalesce(F(column), 0)


def _usable(column: str) -> Least:
    return Least(_of(f"{column}_allocatable"), _of(f"{column}_expected"))


def allocated_of(column: str) -> Least:
    """Without what is lost, whoever has it: that is missing."""
    return Least(F(f"{column}_allocated"), _usable(column))


def _sums(kind: str, column: str) -> dict[str, Coalesce]:
    """As if the pods of all of them had been read: whether they were is asked where these are read."""
    usable = _usable(column)
    sums = {
        "expected": Sum(f"{column}_expected"),
        "allocatable": Sum(usable),
        "allocated": Sum(allocated_of(column)),
        "free": Sum(Greatest(usable - F(f"{column}_allocated"), 0), filter=TAKES_PODS),
        "away": Sum(_of(f"{column}_expected") - usable, filter=IS_RECONFIGURING),
    }
    return {f"{kind}_{name}": Coalesce(each, 0) for name, each in sums.items()}


AMOUNT_SUMS = {name: each for kind, column in AMOUNT_COLUMNS.items() for name, each in _sums(kind, column).items()}


@dataclass(frozen=True)
class Offer:
    """Of one node, as `GpuAmount` is of many."""

    unit: str  # slices, shares; blank: GPUs
    expected: int
    allocatable: int
    requested: int | None  # None: its pods were never read
    is_away: bool = False  # what is not allocatable: the MIG manager cuts it anew

    @property
    def allocated(self) -> int | None:
        return None if self.requested is None else min(self.requested, self.allocatable)

    @property
    def missing(self) -> int:
        return 0 if self.is_away else self.expected - self.allocatable

    @property
    def held_and_missing(self) -> int:
        if self.is_away or self.requested is None:
            return 0
        return min(self.requested, self.expected) - min(self.requested, self.allocatable)


def offers_of(node: Node, *, knows_pods: bool) -> list[Offer]:
    """Of whole GPUs, slices and shares, those that it has, or should have."""
    found, is_away = [], bool(node.reconfiguring)
    for kind, column in AMOUNT_COLUMNS.items():
        expected, allocatable = (getattr(node, f"{column}_{what}") or 0 for what in ("expected", "allocatable"))
        unit = "" if kind == "gpus" else kind
        taken = getattr(node, f"{column}_allocated") if knows_pods else None
        if expected:
            found.append(Offer(unit, expected, min(allocatable, expected), taken, is_away))
    return found
