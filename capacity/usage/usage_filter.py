"""The period, grouping and order of the usage table, stored in the URL. Pure, but for the query's type."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import date, timedelta
from typing import Any
from urllib.parse import urlencode

from django.http import QueryDict

from health.telemetry.usage import GpuUse

LONGEST = 253  # characters of one value
LONGEST_PERIOD = timedelta(days=366)
OWN = "own"
WEEK = "week"
PERIODS: Mapping[str, tuple[str, int]] = {
    "day": ("today", 1),
    WEEK: ("7 days", 7),
    "month": ("30 days", 30),
    "quarter": ("90 days", 90),
    "year": ("365 days", 365),
}
POOL, NAMESPACE, WORKLOAD, OWNER, DAY = "pool", "namespace", "workload", "owner", "day"
GROUPINGS: Mapping[str, str] = {POOL: "Pool", NAMESPACE: "Namespace", WORKLOAD: "Workload", OWNER: "Owner"}
NAME, HOURS, COST = "name", "-hours", "-cost"
ORDERINGS = (NAME, HOURS, COST, *(f"-{use}" for use in GpuUse))

TEXTS = ("cluster", "pool", "namespace", "workload")
LONGEST_WORKLOAD = 320  # characters of kind and name


class BadPeriod(ValueError):
    """A range that has no days, or too many."""


@dataclass(frozen=True)
class UsageFilter:
    period: str = WEEK
    first: date | None = None  # of an own range
    last: date | None = None
    by: str = POOL
    cluster: str = ""
    pool: str = ""  # cluster/name
    namespace: str = ""
    workload: str = ""  # such as Deployment/chat; includes what its controller made, such as ReplicaSets
    ordering: str = HOURS

    @classmethod
    def read(cls, query: QueryDict) -> "UsageFilter":
        """Reads an address. Unknown values are the defaults.

        :raises BadPeriod: for an own range without days
        """
        given: dict[str, Any] = {name: query.get(name, "").strip()[:LONGEST_WORKLOAD] for name in TEXTS}
        period, by, ordering = (query.get(name, "")[:20] for name in ("period", "by", "ordering"))
        wanted = cls(
            period=period if period in (*PERIODS, OWN) else WEEK,
            by=by if by in (*GROUPINGS, DAY) else POOL,
            ordering=ordering if ordering in ORDERINGS else HOURS,
            **given,
        )
        if wanted.period != OWN:
            return wanted
        return replace(wanted, first=_day(query.get("first", "")), last=_day(query.get("last", ""))).checked()

    def checked(self) -> "UsageFilter":
        """:raises BadPeriod: for an own range without days"""
        if self.period == OWN:
            if self.first is None or self.last is None:
                raise BadPeriod("An own range needs a first and a last day, as 2026-11-01.")
            if not timedelta() <= self.last - self.first <= LONGEST_PERIOD:
                raise BadPeriod("The first day must be before the last day, by at most 366 days.")
        return self

    def days(self, today: date) -> tuple[date, date]:
        """Returns the first and the last day, in UTC."""
        if self.first is not None and self.last is not None:
            return self.first, self.last
        return today - timedelta(days=PERIODS[self.period][1] - 1), today

    def query(self, **changed: Any) -> str:
        """Returns the URL's query without defaults."""
        found = replace(self, **changed)
        given = {each.name: getattr(found, each.name) for each in fields(found)}
        return urlencode(
            {name: str(value) for name, value in given.items() if value and value != DEFAULTS[name]}, errors="replace"
        )


DEFAULTS = {each.name: each.default for each in fields(UsageFilter)}


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if len(text) == 10 else None
    except ValueError:
        return None
