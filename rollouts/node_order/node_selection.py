"""Which nodes a stage takes, and in which order. Pure.

A canary stands for the others only if it meets what they are made of: a driver that fails on one kernel is found by
a canary that has that kernel, and by no other.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from gpu.upgrade_controller import parallel_of, unavailable_of
from rollouts.node_order.disruption_cost import UNHARMED, Harm, least_first, least_harm
from rollouts.node_order.failure_domains import UNBOUND, Budgets
from wording.numbers import count

FACTORS = (
    *("kernel", "os_image", "gpu_product", "gpu_layout", "driver_version", "container_runtime", "zone"),
    *("instance_type", "pool"),
)


@dataclass(frozen=True)
class Candidate:
    uid: str
    name: str
    facts: Mapping[str, str]  # by FACTORS
    is_fit: bool = True  # Ready and not cordoned: a node that is broken before proves nothing about the change
    harm: Harm = UNHARMED  # what it takes with it

    @property
    def has_tenants(self) -> bool:
        """Whether pods run there that are made again by themselves, and no job would end with them."""
        return self.harm.pods > 0 and not self.harm.jobs

    @cached_property
    def cohorts(self) -> frozenset[tuple[str, str]]:
        return frozenset((factor, self.facts.get(factor, "")) for factor in FACTORS)


def representatives(candidates: Sequence[Candidate], count: int) -> list[Candidate]:
    """The `count` nodes that together meet the most kinds of node; the same ones each time it is asked.

    A rare kernel counts as much as a common one: the next node is always the one that adds most. Of nodes that add as
    much, one with tenants comes before an idle one, which proves little about the change (hazard Z27): not one on which
    whole jobs would end. Then the node that most others are like, then the one that harms least.
    """
    alike = Counter(cohort for one in candidates for cohort in one.cohorts)
    left = sorted(candidates, key=lambda one: (not one.is_fit, not one.has_tenants, *least_harm(one.harm), one.name))
    chosen: list[Candidate] = []
    covered: set[tuple[str, str]] = set()
    while left and len(chosen) < count:
        new = {one.uid: one.cohorts - covered for one in left}
        if like := _that_add_nothing(left, new):
            chosen += like[: count - len(chosen)]
            left = left[len(like) :]
            continue
        best = max(left, key=lambda one: _worth(one, new[one.uid], alike))  # max keeps the first of equals
        chosen.append(best)
        covered |= best.cohorts
        left.remove(best)
    return chosen


def _worth(one: Candidate, new: AbstractSet[tuple[str, str]], alike: Mapping[tuple[str, str], int]) -> tuple[int, ...]:
    """Returns what makes a node a better canary than others, the most important first."""
    return one.is_fit, len(new), one.has_tenants, sum(alike[cohort] for cohort in new)


def _that_add_nothing(left: Sequence[Candidate], new: Mapping[str, frozenset[tuple[str, str]]]) -> list[Candidate]:
    """Those that are as fit as the first, where none of them meets a kind of node more: one is as good as the next."""
    like = [one for one in left if one.is_fit is left[0].is_fit]
    return [] if any(new[one.uid] for one in like) else like


def in_order(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Fit nodes first, those that harm least before others, the nodes of one job one after another (hazard Z14).

    Of equals by zone and name: so that a zone is through before the next one is touched.
    """
    by_place = sorted(candidates, key=lambda one: (one.facts.get("zone", ""), one.name))
    of_uid = {one.uid: one for one in by_place}
    fit = least_first({one.uid: one.harm for one in by_place if one.is_fit})
    others = least_first({one.uid: one.harm for one in by_place if not one.is_fit})
    return [of_uid[uid] for uid in (*fit, *others)]


def next_wave(ready: Sequence[str], room: int, budgets: Budgets = UNBOUND) -> tuple[str, ...]:
    """Who goes next of those that may, in the order of release: what the engine lets go, and a preview shows."""
    return budgets.going(ready, room)


def waves(targets: Sequence[str], at_once: int, budgets: Budgets = UNBOUND) -> list[tuple[str, ...]]:
    """All of them, where each wave has all of its room. Whom a failure domain keeps back for good goes alone, last."""
    return list(budgets.in_waves(targets, max(1, at_once)))


@dataclass(frozen=True)
class AtOnce:
    nodes: int
    reason: str  # what allows so many, as a sentence
    targets: Sequence[str]
    room: int  # without failure domains
    budgets: Budgets  # of a moment at which nothing is out

    @cached_property
    def by_wave(self) -> Sequence[tuple[str, ...]]:
        """The order in which they go, where each wave has all of its room."""
        return waves(self.targets, self.room, self.budgets)

    @property
    def first_wave(self) -> tuple[str, ...]:
        """Of thousands of waves the others take long to find."""
        return next(self.budgets.in_waves(self.targets, max(1, self.room)), ())


def at_once(allowed: int, targets: Sequence[str], policy: Mapping[str, Any], budgets: Budgets, *, fleet: int) -> AtOnce:
    """The least that a stage, the operator and failure domains allow.

    `allowed`: by the stage. `targets`: names, in their order. `policy`: the operator's. `fleet`: nodes of the object.
    """
    found, reason = allowed, f"The stage allows {allowed}"
    unavailable = unavailable_of(policy, fleet)
    if unavailable is not None and unavailable < found:
        found, reason = unavailable, f"The operator lets {count(unavailable, 'node')} be unavailable"
    parallel = parallel_of(policy) or fleet
    if parallel < found:
        found, reason = parallel, f"The operator upgrades {parallel} at once"
    room, empty = found, budgets.empty()
    largest = empty.largest(targets, max(1, room))
    if largest < min(room, len(targets)):
        found, reason = largest, f"The stage allows {allowed}, and its failure domains {largest} at once"
    return AtOnce(found, f"{reason}.", targets, room, empty)


def uncovered(canary: Sequence[Candidate], others: Sequence[Candidate]) -> dict[tuple[str, str], int]:
    """What the others are made of and the canary is not: (factor, value) → how many nodes."""
    met = frozenset[tuple[str, str]]().union(*(one.cohorts for one in canary))
    missing: dict[tuple[str, str], int] = {}
    for cohort in sorted(cohort for one in others for cohort in one.cohorts - met):
        missing[cohort] = missing.get(cohort, 0) + 1
    return missing


def bound_on_failure_rate(nodes: int) -> float:
    """With no failure among `nodes`, the true rate is below this with 95 % confidence: 1 − 0.05^(1/n)."""
    return 1.0 if nodes == 0 else 1 - 0.05 ** (1 / nodes)


def nodes_for(rate: float) -> int:
    """How many nodes without a failure show, with 95 % confidence, that fewer than this rate fail: 29 for 10 %."""
    return math.ceil(math.log(0.05) / math.log(1 - rate))
