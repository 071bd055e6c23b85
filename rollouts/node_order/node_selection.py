"""Selects the nodes of a stage and their order. Pure.

A canary represents others only if it has their properties: a driver that fails on one kernel is found only by a canary
with that kernel.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from gpu.upgrade_controller import parallel_of, unavailable_of
from operations.failure_domains import UNBOUND, Budgets
from operations.tenants.disruption_cost import UNHARMED, Harm, least_harm, order_by_disruption
from wording.numbers import count

FACTORS: Mapping[str, str] = {
    "kernel": "kernel",
    "os_image": "OS image",
    "gpu_product": "GPU",
    "gpu_layout": "GPU layout",
    "driver_version": "old driver",
    "container_runtime": "container runtime",
    "zone": "zone",
    "instance_type": "instance type",
    "pool": "pool",
}  # column of a node → display name


@dataclass(frozen=True)
class Candidate:
    uid: str
    name: str
    facts: Mapping[str, str]  # by FACTORS
    is_fit: bool = True  # Ready and not cordoned: a node that is broken before proves nothing about the change
    harm: Harm = UNHARMED  # work that is lost with the node

    @property
    def has_tenants(self) -> bool:
        """Returns whether the node has pods that restart by themselves, and no job would end."""
        return self.harm.pods > 0 and not self.harm.jobs

    @cached_property
    def cohorts(self) -> frozenset[tuple[str, str]]:
        return frozenset((factor, self.facts.get(factor, "")) for factor in FACTORS)


def representatives(candidates: Sequence[Candidate], count: int) -> list[Candidate]:
    """Returns the `count` nodes that together cover the most kinds of nodes; the choice is stable.

    A rare kernel counts as much as a common one: the next node is the one that adds most kinds. Among equals a node
    with tenants comes first, since an idle node proves little (Z27), unless whole jobs would end on it. Then comes the
    node that most others resemble, then the one with the least disruption.
    """
    alike = Counter(cohort for one in candidates for cohort in one.cohorts)
    left = sorted(candidates, key=lambda one: (not one.is_fit, not one.has_tenants, *least_harm(one.harm), one.name))
    chosen: list[Candidate] = []
    covered: set[tuple[str, str]] = set()
    while left and len(chosen) < count:
        new = {one.uid: one.cohorts - covered for one in left}
        if like := _without_new_values(left, new):
            chosen += like[: count - len(chosen)]
            left = left[len(like) :]
            continue
        best = max(left, key=lambda one: _sort_key(one, new[one.uid], alike))  # max keeps the first of equals
        chosen.append(best)
        covered |= best.cohorts
        left.remove(best)
    return chosen


def _sort_key(
    one: Candidate, new: AbstractSet[tuple[str, str]], alike: Mapping[tuple[str, str], int]
) -> tuple[int, ...]:
    return one.is_fit, len(new), one.has_tenants, sum(alike[cohort] for cohort in new)


def _without_new_values(left: Sequence[Candidate], new: Mapping[str, frozenset[tuple[str, str]]]) -> list[Candidate]:
    like = [one for one in left if one.is_fit is left[0].is_fit]
    return [] if any(new[one.uid] for one in like) else like


def in_order(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Returns fit nodes first, those with the least disruption first, nodes of one job together (Z14).

    Equals are sorted by zone and name, so that one zone is complete before the next begins.
    """
    by_place = sorted(candidates, key=lambda one: (one.facts.get("zone", ""), one.name))
    of_uid = {one.uid: one for one in by_place}
    fit = order_by_disruption({one.uid: one.harm for one in by_place if one.is_fit})
    others = order_by_disruption({one.uid: one.harm for one in by_place if not one.is_fit})
    return [of_uid[uid] for uid in (*fit, *others)]


def next_wave(ready: Sequence[str], room: int, budgets: Budgets = UNBOUND) -> tuple[str, ...]:
    """Returns the next wave in release order. Engine and preview both use it."""
    return budgets.going(ready, room)


def waves(targets: Sequence[str], at_once: int, budgets: Budgets = UNBOUND) -> list[tuple[str, ...]]:
    """Returns all waves, each with its full room. Nodes that no budget admits are released alone, last."""
    return list(budgets.in_waves(targets, max(1, at_once)))


@dataclass(frozen=True)
class AtOnce:
    nodes: int
    reason: str  # sentence about the limit of the wave's size
    targets: Sequence[str]
    room: int  # without failure domains
    budgets: Budgets  # of a moment at which nothing is out

    @cached_property
    def by_wave(self) -> Sequence[tuple[str, ...]]:
        """Returns all waves, each with its full room."""
        return waves(self.targets, self.room, self.budgets)

    @property
    def first_wave(self) -> tuple[str, ...]:
        """Returns the first wave without computing thousands of others."""
        return next(self.budgets.in_waves(self.targets, max(1, self.room)), ())


def at_once(allowed: int, targets: Sequence[str], policy: Mapping[str, Any], budgets: Budgets, *, fleet: int) -> AtOnce:
    """Returns the smallest of the limits of stage, operator and failure domains.

    `allowed` is the stage's limit, `targets` are names in order, `policy` is the operator's, `fleet` are the object's
    nodes.
    """
    found, reason = allowed, f"The stage allows {allowed}"
    unavailable = unavailable_of(policy, fleet)
    if unavailable is not None and unavailable < found:
        found, reason = unavailable, f"The operator allows {count(unavailable, 'unavailable node')}"
    parallel = parallel_of(policy) or fleet
    if parallel < found:
        found, reason = parallel, f"The operator upgrades {parallel} at once"
    room, empty = found, budgets.empty()
    largest = empty.largest(targets, max(1, room))
    if largest < min(room, len(targets)):
        found, reason = largest, f"The stage allows {allowed}, and its failure domains {largest} at once"
    return AtOnce(found, f"{reason}.", targets, room, empty)


def uncovered(canary: Sequence[Candidate], others: Sequence[Candidate]) -> dict[tuple[str, str], int]:
    """Returns the kinds of nodes that the canary lacks: (factor, value) → number of nodes."""
    met = frozenset[tuple[str, str]]().union(*(one.cohorts for one in canary))
    missing: dict[tuple[str, str], int] = {}
    for cohort in sorted(cohort for one in others for cohort in one.cohorts - met):
        missing[cohort] = missing.get(cohort, 0) + 1
    return missing


@lru_cache(maxsize=4096)
def bound_on_failure_rate(nodes: int, *, failed: int = 0) -> float:
    """Returns the upper 95 % confidence bound of the failure rate, by Clopper and Pearson.

    After 0 failures it is 1 − 0.05^(1/n).
    """
    if failed >= nodes:
        return 1.0
    if not failed:
        return 1 - 0.05 ** (1 / nodes)
    least, most = failed / nodes, 1.0
    for _ in range(40):
        rate = (least + most) / 2
        so_few = sum(math.exp(_log_chance(k, nodes, rate)) for k in range(failed + 1))
        least, most = (rate, most) if so_few > 0.05 else (least, rate)
    return most


def _log_chance(failed: int, nodes: int, rate: float) -> float:
    """Returns the logarithm of the binomial chance: of thousands of nodes the coefficient exceeds any float."""
    ways = math.lgamma(nodes + 1) - math.lgamma(failed + 1) - math.lgamma(nodes - failed + 1)
    return ways + failed * math.log(rate) + (nodes - failed) * math.log1p(-rate)


def bound_in_percent(nodes: int, *, failed: int = 0) -> int:
    """Returns the bound as whole percent, rounded up."""
    return min(100, math.ceil(100 * bound_on_failure_rate(nodes, failed=failed)))


def nodes_for(rate: float) -> int:
    """Returns how many nodes without failure show, at 95 % confidence, a failure rate below this: 29 for 10 %."""
    return math.ceil(math.log(0.05) / math.log(1 - rate))
