"""Restraints on releases beside the plan itself: freezes, closed maintenance windows, and halts not yet in its rows.

They are read again in the transaction of each release and before each label.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from fleet.models import Pool
from kube import selectors
from operations.models import Freeze
from rollouts.lifecycle import PlanState
from rollouts.models import MaintenanceWindow, PendingCommand, Plan
from rollouts.windows import Interval, Schedule, common, union, zone_named
from wording.instants import moment
from wording.numbers import are, either

GOES_BACK = frozenset({PlanState.ROLLING_BACK, PlanState.ABORTING})  # or nowhere
FEW = 500  # keys that a query names; of more, every member of the pools is read
FAR = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Restraint:
    sentence: str
    ends_at: datetime | None  # None: when a person ends it
    is_stop: bool = False

    @property
    def urgency(self) -> tuple[bool, bool, datetime]:
        """Returns the sort key: the stop first, then what never ends by itself, then what ends last."""
        return self.is_stop, self.ends_at is None, self.ends_at or FAR


@dataclass(frozen=True)
class Restraints:
    """The restraints of one cluster at one moment, for one direction of plans."""

    cluster_id: int
    of_all: tuple[Restraint, ...] = ()  # these block every node of a plan
    of_pools: Mapping[int, tuple[Restraint, ...]] = field(default_factory=dict)
    windows: Windows | None = None  # None: there are none here, or none that bind

    @property
    def first(self) -> Restraint | None:
        return most_urgent(self.of_all)

    def of_nodes(self, uids: Collection[str]) -> dict[str, Restraint]:
        """Returns the restraint of each node by UID, with pool membership of now. One query at most."""
        binding = self._binding
        pools = pools_of(self.cluster_id, uids, binding) if binding else {}
        by_pools = {its: self._in(its, of_all=self.of_all) for its in {frozenset(), *pools.values()}}
        found = {uid: by_pools[pools.get(uid, frozenset())] for uid in uids}
        return {uid: restraint for uid, restraint in found.items() if restraint}

    def why_not(self, uids: Collection[str]) -> str:
        found = most_urgent(self.of_nodes(uids).values())
        return found.sentence if found else ""

    def openings_of(self, uids: Collection[str], *, lasting: timedelta) -> dict[str, OpenHours]:
        """Returns the windows that bind each node, by UID. One query at most.

        `lasting` is the longest duration that a gate asks for.
        """
        if self.windows is None:
            return {}
        pools = pools_of(self.cluster_id, uids, self.windows.pools) if self.windows.pools else {}
        by_pools = {its: self.windows.openings(its, lasting=lasting) for its in {frozenset(), *pools.values()}}
        found = {uid: by_pools[pools.get(uid, frozenset())] for uid in uids}
        return {uid: openings for uid, openings in found.items() if openings}

    def of_labels(self, labels: Mapping[str, str]) -> Restraint | None:
        """Returns the restraint by pools that these labels select; the API server may show a pool before rows do."""
        pools = Pool.objects.filter(pk__in=self._binding) if self._binding else ()
        mine = frozenset(pool.pk for pool in pools if selectors.parse(pool.selector).matches(labels))
        return self._in(mine, of_all=()) if mine else None

    @property
    def _binding(self) -> frozenset[int]:
        return frozenset(self.of_pools) | (self.windows.pools if self.windows else frozenset())

    def _in(self, pools: frozenset[int], *, of_all: tuple[Restraint, ...]) -> Restraint | None:
        closed = self.windows.closed(pools) if self.windows else None
        frozen = (each for pool in pools for each in self.of_pools.get(pool, ()))
        return most_urgent([*of_all, *frozen, *([closed] if closed else [])])


class OpenHours(NamedTuple):
    """The times at which all windows that bind a node are open."""

    sentence: str  # whether they are now, and until when
    # The one that is in progress, or the next, first; of the others those that are longer than all to come before them.
    intervals: tuple[Interval, ...]


@dataclass(frozen=True)
class Windows:
    """The maintenance windows of one cluster at one moment."""

    at: datetime
    by_place: Mapping[int, tuple[MaintenanceWindow, ...]]  # pool → its own; 0: the cluster's

    @property
    def pools(self) -> frozenset[int]:
        return frozenset(self.by_place) - {0}

    def closed(self, pools: frozenset[int]) -> Restraint | None:
        """Returns why a node of these pools may not be released: of each place with windows, one must be open."""
        groups, ahead = self._of(pools)
        following = next(ahead, None)
        if not groups or (following and following.opens_at <= self.at):
            return None
        return Restraint(self._says_closed(groups, following), following.opens_at if following else None)

    def openings(self, pools: frozenset[int], *, lasting: timedelta) -> OpenHours | None:
        """Returns the opening hours up to the first that is long enough; None if no window binds the node."""
        groups, ahead = self._of(pools)
        if not groups:
            return None
        found = tuple(_ever_longer(ahead, lasting=lasting, now=self.at))
        first = found[0] if found else None
        if first and first.opens_at <= self.at:
            return OpenHours(_open_windows_text(groups, first, now=self.at), found)
        return OpenHours(self._says_closed(groups, first), found)

    def intervals(self, pools: frozenset[int]) -> Iterator[Interval] | None:
        """Yields the times at which all windows that bind these pools are open; None if no window binds them."""
        groups, ahead = self._of(pools)
        return ahead if groups else None

    def _of(self, pools: frozenset[int]) -> tuple[ByPlace, Iterator[Interval]]:
        groups = [self.by_place[place] for place in sorted({0, *pools}) if place in self.by_place]
        schedules = [[window.schedule for window in group] for group in groups]
        return groups, common(schedules, after=self.at) if groups else iter(())

    def _says_closed(self, groups: ByPlace, following: Interval | None) -> str:
        shut = [group for group in groups if not _is_open([window.schedule for window in group], at=self.at)]
        return _says_closed(shut or groups, following, now=self.at)


ByPlace = Sequence[Sequence[MaintenanceWindow]]


def _ever_longer(ahead: Iterable[Interval], *, lasting: timedelta, now: datetime) -> Iterator[Interval]:
    """Yields the current opening, and of the coming ones each that is longer than all before, up to the wanted length.

    A caller with a shorter wish finds its first fitting opening among them.
    """
    longest = timedelta(0)
    for one in ahead:
        if one.opens_at <= now:
            yield one
            continue
        if one.closes_at - one.opens_at > longest:
            longest = one.closes_at - one.opens_at
            yield one
        if longest >= lasting:
            return


def _is_open(schedules: Sequence[Schedule], *, at: datetime) -> bool:
    first = next(union(schedules, after=at), None)
    return first is not None and first.opens_at <= at


def _says_closed(shut: ByPlace, following: Interval | None, *, now: datetime) -> str:
    number = _number(shut)
    if following is None:
        them = either(number, "it", "them")
        return (
            f"{_called(shut)} {either(number, 'does', 'do')} not open again. Remove {them}, or create another window."
        )
    return f"{_called(shut)} {are(number)} closed until {_on_the_wall(shut, following.opens_at, now=now)}."


def _open_windows_text(groups: ByPlace, current: Interval, *, now: datetime) -> str:
    open_ = [[window for window in group if _is_open([window.schedule], at=now)] for group in groups]
    return f"{_called(open_)} {are(_number(open_))} open until {_on_the_wall(open_, current.closes_at, now=now)}."


def _number(groups: ByPlace) -> int:
    return sum(len(group) for group in groups)


def _called(groups: ByPlace) -> str:
    places = " and ".join(group[0].place for group in groups)
    return f"The maintenance {either(_number(groups), 'window', 'windows')} of {places}"


def _on_the_wall(groups: ByPlace, at: datetime, *, now: datetime) -> str:
    zones = {window.zone for group in groups for window in group}
    zone = zones.pop() if len(zones) == 1 else "UTC"
    return moment(at, now=now, zone=zone_named(zone), called=zone)


def windows_of(cluster_id: int) -> dict[int, tuple[MaintenanceWindow, ...]]:
    """Returns the windows by pool; 0 is the cluster. One query, and two more if there are any."""
    found: dict[int, tuple[MaintenanceWindow, ...]] = {}
    for window in (
        MaintenanceWindow.objects.filter(cluster=cluster_id).order_by("pk").prefetch_related("cluster", "pool")
    ):
        found[window.pool_id or 0] = (*found.get(window.pool_id or 0, ()), window)
    return found


def schedules_of(cluster_id: int, *, of_pool: int | None) -> tuple[list[Schedule], list[tuple[str, list[Schedule]]]]:
    by_place = windows_of(cluster_id)
    own = [window.schedule for window in by_place.pop(of_pool or 0, ())]
    others = {0: by_place[0]} if of_pool and 0 in by_place else {} if of_pool else by_place
    return own, [(its[0].place, [window.schedule for window in its]) for its in others.values()]


def restraints_of(plan: Plan, *, now: datetime) -> Restraints:
    """Returns the plan's restraints. Three queries, and two more each for freezes and windows."""
    is_rollback = restores(plan)
    frozen = Freeze.objects.in_force(now=now).binding(plan.cluster_id).prefetch_related("cluster", "pool")
    freezes = [one for one in frozen if one.binds_rollbacks or not is_rollback]
    of_pools: dict[int, tuple[Restraint, ...]] = {}
    for one in freezes:
        if one.pool_id:
            of_pools[one.pool_id] = (*of_pools.get(one.pool_id, ()), restraint_by(one, now=now))
    asked = PendingCommand.objects.restraining().filter(plan=plan) if plan.is_under_way else ()
    of_all = (
        *(Restraint(one.sentence, ends_at=None) for one in asked),
        *(restraint_by(one, now=now) for one in freezes if not one.pool_id),
    )
    by_place = {} if is_rollback else windows_of(plan.cluster_id)
    windows = Windows(now, by_place) if by_place else None
    return Restraints(plan.cluster_id, of_all, of_pools, windows)


def restores(plan: Plan) -> bool:
    """Returns whether the plan's releases restore the previous state. Only freezes that include rollbacks bind it then
    (Z32).

    Releases to a foreign version or template are bound by everything (Z38).
    """
    return plan.state in GOES_BACK and not plan.releases_to_foreign_version


def why_not(plan: Plan, uids: Collection[str], *, now: datetime) -> str:
    return restraints_of(plan, now=now).why_not(uids)


def why_frozen(plan: Plan, uids: Collection[str], *, now: datetime) -> str:
    """Returns the same without windows, for work before a window opens."""
    return replace(restraints_of(plan, now=now), windows=None).why_not(uids)


def restraint_by(freeze: Freeze, *, now: datetime) -> Restraint:
    return Restraint(freeze.sentence(now=now), freeze.until, freeze.is_stop)


def most_urgent(restraints: Iterable[Restraint]) -> Restraint | None:
    return max(restraints, key=lambda one: one.urgency, default=None)


def pools_of(cluster_id: int, uids: Collection[str], pools: Collection[int]) -> dict[str, frozenset[int]]:
    members = Pool.nodes.through.objects.filter(pool__in=pools, node__cluster=cluster_id)
    if len(uids) <= FEW:
        members = members.filter(node__uid__in=uids)
    found: dict[str, frozenset[int]] = {}
    for uid, pool in members.values_list("node__uid", "pool_id"):
        found[uid] = found.get(uid, frozenset()) | {pool}
    return found
