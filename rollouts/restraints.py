"""What keeps nodes from being let go, beside their own plan: freezes, of the fleet, of a cluster, of a pool.

Read anew in the transaction of each release, and before each label: what a round saw is old by then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from fleet.models import Pool
from kube import selectors
from rollouts.lifecycle import PlanState
from rollouts.models import Freeze, Plan
from wording.instants import moment

GOES_BACK = frozenset({PlanState.ROLLING_BACK, PlanState.ABORTING})
FEW = 500  # keys that a query names; of more, every member of the pools is read
FAR = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Restraint:
    """One thing that holds nodes back, in one sentence for a person."""

    sentence: str
    ends_at: datetime | None  # None: when a person ends it
    is_stop: bool = False

    @property
    def urgency(self) -> tuple[bool, bool, datetime]:
        """What a person must act on comes first: the stop, what never ends by itself, then what ends last."""
        return self.is_stop, self.ends_at is None, self.ends_at or FAR


@dataclass(frozen=True)
class Restraints:
    """Of one cluster at one moment, for plans that go forward, or for those that go back."""

    cluster_id: int
    of_all: tuple[Restraint, ...] = ()  # nothing of a plan goes, whichever its nodes are
    of_pools: Mapping[int, tuple[Restraint, ...]] = field(default_factory=dict)

    @property
    def first(self) -> Restraint | None:
        """Of those that hold everything back, the one that a person must act on first."""
        return most_urgent(self.of_all)

    def of_nodes(self, uids: Collection[str]) -> dict[str, Restraint]:
        """Node's uid → why it may not go. Those of pools bind the nodes that are in the pool now. One query at most."""
        wanted = frozenset(uids)
        found: dict[str, Restraint | None] = dict.fromkeys(wanted, self.first)
        pools = _pools_of(self.cluster_id, uids, self.of_pools) if self.of_pools else {}
        for uid, its in pools.items():
            if uid not in wanted:
                continue
            found[uid] = most_urgent([*self.of_all, *(each for pool in its for each in self.of_pools[pool])])
        return {uid: restraint for uid, restraint in found.items() if restraint}

    def of_labels(self, labels: Mapping[str, str]) -> Restraint | None:
        """What the pools that these labels name say: the API server may show one that no row shows yet."""
        pools = Pool.objects.filter(pk__in=self.of_pools) if self.of_pools else ()
        mine = (pool.pk for pool in pools if selectors.parse(pool.selector).matches(labels))
        return most_urgent(each for pool in mine for each in self.of_pools[pool])


def restraints_of(plan: Plan, *, now: datetime) -> Restraints:
    """One query."""
    goes_back = plan.state in GOES_BACK
    frozen = Freeze.objects.in_force(now=now).binding(plan.cluster_id).select_related("cluster", "pool")
    freezes = [one for one in frozen if one.holds_rollbacks or not goes_back]
    of_pools: dict[int, tuple[Restraint, ...]] = {}
    for one in freezes:
        if one.pool_id:
            of_pools[one.pool_id] = (*of_pools.get(one.pool_id, ()), restraint_by(one, now=now))
    of_all = tuple(restraint_by(one, now=now) for one in freezes if not one.pool_id)
    return Restraints(plan.cluster_id, of_all, of_pools)


def why_not(plan: Plan, uids: Collection[str], *, now: datetime) -> str:
    """Why one of these nodes may not be let go now. Blank: all of them may. Two queries at most."""
    found = most_urgent(restraints_of(plan, now=now).of_nodes(uids).values())
    return found.sentence if found else ""


def restraint_by(freeze: Freeze, *, now: datetime) -> Restraint:
    place = f"{freeze.place[0].upper()}{freeze.place[1:]}"
    until = f" until {moment(freeze.until, now=now)}" if freeze.until else ""
    what = "stopped" if freeze.is_stop else "frozen"
    return Restraint(ended(f"{place} is {what} by {freeze.by}{until}: {freeze.because}"), freeze.until, freeze.is_stop)


def ended(sentence: str) -> str:
    """With its full stop, whoever wrote its end."""
    return sentence if sentence.endswith((".", "!", "?")) else f"{sentence}."


def most_urgent(restraints: Iterable[Restraint]) -> Restraint | None:
    return max(restraints, key=lambda one: one.urgency, default=None)


def _pools_of(cluster_id: int, uids: Collection[str], pools: Collection[int]) -> dict[str, list[int]]:
    members = Pool.nodes.through.objects.filter(pool__in=pools, node__cluster=cluster_id)
    if len(uids) <= FEW:
        members = members.filter(node__uid__in=uids)
    found: dict[str, list[int]] = {}
    for uid, pool in members.values_list("node__uid", "pool_id"):
        found.setdefault(uid, []).append(pool)
    return found
