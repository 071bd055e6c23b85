"""The opening hours of a window: instants by its zone's clock, and combinations of several windows."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from heapq import merge
from itertools import count, islice
from typing import NamedTuple
from zoneinfo import ZoneInfo, available_timezones

from rollouts.windows.rules import BadWindow, openings_of, read_rule

SHORTEST, LONGEST = timedelta(minutes=5), timedelta(days=7)
HORIZON = 5  # years ahead in which an opening is looked for
EARLIEST, LATEST = 2000, 2100  # years in which a window may first open
LONGEST_ZONE = 64  # characters


class Interval(NamedTuple):
    """The time from `opens_at` until just before `closes_at`."""

    opens_at: datetime
    closes_at: datetime


@dataclass(frozen=True)
class Schedule:
    """A recurrence rule with its first opening by local time, its duration and its zone."""

    rule: str
    starts_at: datetime  # without a zone
    zone: str
    duration: timedelta  # by a stopwatch: also in a night that has an hour less or more

    def intervals(self, *, after: datetime) -> Iterator[Interval]:
        """Yields the openings that end after this instant, in order, up to the horizon. They may overlap."""
        zone = zone_named(self.zone)
        earliest = (after - self.duration - timedelta(days=2)).astimezone(UTC).replace(tzinfo=None)
        starts = openings_of(self.rule, self.starts_at, after.year + HORIZON + 1)
        for start in islice(starts, bisect_left(starts, earliest), None):
            opens_at = _instant(start, zone)
            if opens_at + self.duration > after:
                yield Interval(opens_at, opens_at + self.duration)

    def refuse_nonsense(self, *, now: datetime) -> None:
        """Checks the schedule.

        :raises BadWindow: with the field that is wrong
        """
        read_rule(self.rule)
        if len(self.zone) > LONGEST_ZONE or self.zone not in zones():
            raise BadWindow("zone", f"Unknown time zone {self.zone[:LONGEST_ZONE]}. Write it as Europe/Berlin.")
        if not SHORTEST <= self.duration <= LONGEST:
            raise BadWindow("duration", "A window is open for at least 5 minutes, and for at most 7 days.")
        if not EARLIEST <= self.starts_at.year <= LATEST:
            raise BadWindow("starts_at", f"The first opening must be in a year from {EARLIEST} to {LATEST}.")
        if next(self.intervals(after=now), None) is None:
            never = f"This window does not open in the next {HORIZON} years, so no node would ever be released."
            raise BadWindow("rule", never)


def first_day(opens_at: time, zone: str, duration: timedelta, *, now: datetime) -> date:
    """Returns the first day of the zone whose opening has not ended; in UTC if the zone is unknown."""
    wall = zone_named(zone if zone in zones() else "UTC")
    earliest = (now - duration).astimezone(wall).date() - timedelta(days=1)
    days = (earliest + number * timedelta(days=1) for number in count())
    return next(day for day in days if _instant(datetime.combine(day, opens_at), wall) + duration > now)


def _instant(start: datetime, zone: ZoneInfo) -> datetime:
    """Returns the instant of a local time.

    A skipped time keeps its distance from midnight (RFC 5545, 3.3.5); of a repeated time the first counts.
    """
    return start.replace(tzinfo=zone).astimezone(UTC)


@cache
def zones() -> frozenset[str]:
    return frozenset(available_timezones()) - {"localtime", "Factory"}


@cache
def zone_named(key: str) -> ZoneInfo:
    return ZoneInfo(key)


def union(schedules: Iterable[Schedule], *, after: datetime) -> Iterator[Interval]:
    current: Interval | None = None
    for each in merge(*(schedule.intervals(after=after) for schedule in schedules)):
        if current is None:
            current = each
        elif each.opens_at <= current.closes_at:
            current = Interval(current.opens_at, max(current.closes_at, each.closes_at))
        else:
            yield current
            current = each
    if current is not None:
        yield current


def common(groups: Sequence[Iterable[Schedule]], *, after: datetime) -> Iterator[Interval]:
    """Yields the times at which each group has an open schedule. `groups` is not empty."""
    first, *others = (union(group, after=after) for group in groups)
    found: Iterator[Interval] = first
    for other in others:
        found = _intersect(found, other)
    return found


def _intersect(one: Iterator[Interval], other: Iterator[Interval]) -> Iterator[Interval]:
    left, right = next(one, None), next(other, None)
    while left and right:
        both = Interval(max(left.opens_at, right.opens_at), min(left.closes_at, right.closes_at))
        if both.opens_at < both.closes_at:
            yield both
        if left.closes_at <= right.closes_at:
            left = next(one, None)
        else:
            right = next(other, None)
