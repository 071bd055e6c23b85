"""Totals of whole GPUs, slices and shares, added up in the database; the only place that does.

For each: expected = allocated + free + unusable + unread + missing + away. Units that a pod has but the node lost
are missing, not allocated. Units are away while the MIG manager reconfigures, and unread while pods are unknown.
"""

from dataclasses import dataclass, replace

from django.db.models import F, Q, Sum
from django.db.models.functions import Coalesce, Greatest, Least

from fleet.models import Bookmark, Node
from fleet.models.state_column import IS_RECONFIGURING
from kube.resources import PODS

AMOUNT_COLUMNS = {"gpus": "gpu", "slices": "slices", "shares": "shares"}  # plural and column prefix
TAKES_PODS = Q(is_ready=True, is_unschedulable=False)
PODS_READ = Bookmark.objects.known(PODS.name)


@dataclass(frozen=True)
class GpuAmount:
    """Amounts of one unit. `free` is on ready nodes that accept pods. `free` and `allocated` None: pods unknown."""

    expected: int | None = 0  # None, also for `allocatable` and `away`: no node reported any
    allocatable: int | None = 0
    allocated: int | None = 0
    free: int | None = 0
    unread: int = 0  # allocatable, on nodes whose pods were never read
    away: int | None = 0  # the MIG manager reconfigures them

    @property
    def missing(self) -> int | None:
        return None if self.expected is None else self.expected - (self.allocatable or 0) - (self.away or 0)

    @property
    def unusable(self) -> int:
        """Returns free units that no pod can get: on cordoned or unready nodes."""
        return (self.allocatable or 0) - self.unread - (self.allocated or 0) - (self.free or 0)

    def without_pods(self) -> "GpuAmount":
        return replace(self, allocated=None, free=None)


def _value_or_zero(column: str) -> Coalesce:
    return Coalesce(F(column), 0)


def _usable(column: str) -> Least:
    return Least(_value_or_zero(f"{column}_allocatable"), _value_or_zero(f"{column}_expected"))


def allocated_of(column: str) -> Least:
    """Returns the allocated units without lost ones, which count as missing."""
    return Least(F(f"{column}_allocated"), _usable(column))


def _sums(kind: str, column: str) -> dict[str, Coalesce]:
    """Returns the aggregates as if all pods were known; the reader checks whether they are."""
    usable = _usable(column)
    sums = {
        "expected": Sum(f"{column}_expected"),
        "allocatable": Sum(usable),
        "allocated": Sum(allocated_of(column)),
        "free": Sum(Greatest(usable - F(f"{column}_allocated"), 0), filter=TAKES_PODS),
        "away": Sum(_value_or_zero(f"{column}_expected") - usable, filter=IS_RECONFIGURING),
    }
    return {f"{kind}_{name}": Coalesce(each, 0) for name, each in sums.items()}


AMOUNT_SUMS = {name: each for kind, column in AMOUNT_COLUMNS.items() for name, each in _sums(kind, column).items()}


@dataclass(frozen=True)
class Offer:
    """The amount of one unit on one node, as `GpuAmount` is for many nodes."""

    unit: str  # slices, shares; blank: GPUs
    expected: int
    allocatable: int
    requested: int | None  # None: pods were never read
    is_away: bool = False  # the missing part is being reconfigured by the MIG manager

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
    """Returns the amounts of whole GPUs, slices and shares that a node has or should have."""
    found, is_away = [], bool(node.reconfiguring)
    for kind, column in AMOUNT_COLUMNS.items():
        expected, allocatable = (getattr(node, f"{column}_{what}") or 0 for what in ("expected", "allocatable"))
        unit = "" if kind == "gpus" else kind
        taken = getattr(node, f"{column}_allocated") if knows_pods else None
        if expected:
            found.append(Offer(unit, expected, min(allocatable, expected), taken, is_away))
    return found
