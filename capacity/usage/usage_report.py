"""The usage of a period as its page, file and REST answer show it: sums, days and lines, in GPU-hours and money.

A cost is the price on the day of the hour. Hours in pools without a price, or in pools with different prices, have no
cost. Costs in several currencies are not added up.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db.models import (
    BooleanField,
    Case,
    DateField,
    ExpressionWrapper,
    F,
    FloatField,
    Q,
    Sum,
    Value,
    When,
    prefetch_related_objects,
)

from capacity.usage.free_shares import FreeShares
from capacity.usage.pool_prices import PoolPrices, UnpricedPool, unpriced_pools
from capacity.usage.usage_filter import COST, DAY, HOURS, NAME, NAMESPACE, OWNER, WORKLOAD, UsageFilter
from capacity.usage.usage_lines import GONE_POOL, UsageAmount, UsageLine, UsePart
from capacity.usage.workload_owners import owners_of
from fleet.models import Cluster
from health.models import NamespaceUsage, OwnerUsage, UsageDay
from health.telemetry.usage import GpuUse
from people.models import User

RECORDED_WITHIN = timedelta(minutes=15)  # after the end of an hour
NAMED_AT_MOST = 1000  # owners that a query names one by one
NOT_ALLOCATED, NO_OWNER_LABEL = "not allocated", "no owner known"
PREFIX = "sum_of_"  # an aggregate may not have a column's name
# By kind: the kind of its children, and the suffix of their names: the hash of the template (at most 10 characters), or
# the minute of the schedule.
MADE = {"Deployment": ("ReplicaSet", "[a-z0-9]{1,10}"), "CronJob": ("Job", "[0-9]{1,11}")}


@dataclass(frozen=True)
class Coverage:
    by_day: Mapping[date, int]  # hours of clusters that are in the sums
    expected: int  # since the first recorded hour of each cluster
    uncounted: int  # nodes without a known number of GPUs
    inferred: int  # of the recorded, begun before the cluster was added: by the start times of its pods

    @property
    def recorded(self) -> int:
        return sum(self.by_day.values())

    @property
    def missing(self) -> int:
        return max(0, self.expected - self.recorded)


@dataclass(frozen=True)
class UsageReport:
    wanted: UsageFilter
    first: date
    last: date
    total: UsageAmount
    days: Sequence[UsageLine]
    lines: Sequence[UsageLine]
    has_more: bool
    coverage: Coverage
    unpriced: Sequence[UnpricedPool]


def usage_report(user: User, wanted: UsageFilter, *, now: datetime, start: int = 0, most: int = 50) -> UsageReport:
    """Returns the report with at most so many lines. Ten queries, whatever the fleet and the period are."""
    prefetch_related_objects([user], "bindings")
    first, last = wanted.days(now.astimezone(UTC).date())
    clusters = dict(Cluster.objects.visible_to(user).values_list("pk", "name"))
    prices = PoolPrices(user, first, last)
    shares = FreeShares(list(prices.pools), first, last)
    of_workloads, of_namespaces = (
        _filter_sums(model.objects.visible_to(user).filter(day__gte=first, day__lte=last), wanted, clusters, prices)
        for model in (OwnerUsage, NamespaceUsage)
    )
    of_days = of_workloads if wanted.workload else of_namespaces
    by_holder = of_days.annotate(is_free=ExpressionWrapper(Q(namespace=""), output_field=BooleanField()))
    groups = list(_grouped(by_holder, "day", "cluster", "pools", "is_free"))
    total, days, pools = UsageAmount(), _days(first, last), dict[tuple[int, str], UsageLine]()
    free: dict[int, UsageAmount] = defaultdict(UsageAmount)  # hours that no pod had, by cluster
    for group in groups:
        hours, price = _hours(group), prices.of(group["pools"], group["day"])
        names = prices.names(group["pools"])
        key = group["cluster"], group["pools"] if names != GONE_POOL else GONE_POOL
        cluster = clusters.get(group["cluster"], "")
        line = pools.setdefault(key, UsageLine(names, cluster, pools=names, price=prices.of(group["pools"], last)))
        unallocated = shares.split(group["pools"], group["day"], hours[GpuUse.UNALLOCATED])
        parts = {UsePart.UNDER_USED: group[f"{PREFIX}under_used"], **unallocated}
        for amount in (total, days[group["day"]].amount, line.amount):
            amount.add(hours, price, parts, group[f"{PREFIX}rated"])
        if group["is_free"]:
            free[group["cluster"]].add(hours, price, parts, group[f"{PREFIX}rated"])
    coverage = _coverage(_chosen(clusters, wanted), first, last, now=now)
    for day, its_line in days.items():
        its_line.recorded = coverage.by_day.get(day, 0)
    if wanted.by == OWNER:
        every = _lines_by_label(of_workloads, prices, clusters, free)
        found = _ordered(every, wanted.ordering, prices.book.main_currency)[start : start + most + 1]
    elif wanted.by in (NAMESPACE, WORKLOAD):
        of_owners = of_workloads if wanted.by == WORKLOAD else of_days
        keys = {group["pools"] for group in groups}
        found = _lines_by_owner(of_owners, wanted, keys, prices, clusters, free, start, most)
    else:
        every = (
            list(days.values())
            if wanted.by == DAY
            else _ordered(pools.values(), wanted.ordering, prices.book.main_currency)
        )
        found = every[start : start + most + 1]
    return UsageReport(
        wanted, first, last, total, list(days.values()), found[:most], len(found) > most,
        coverage, unpriced_pools(user, pools, prices),
    )  # fmt: skip


def _filter_sums(sums: Any, wanted: UsageFilter, clusters: Mapping[int, str], prices: PoolPrices) -> Any:
    if wanted.cluster:
        sums = sums.filter(cluster__in=_chosen(clusters, wanted))
    if wanted.pool:
        keys = [pool.pk for pool in prices.pools.values() if f"{pool.cluster.name}/{pool.name}" == wanted.pool]
        sums = sums.filter(sums.in_pools(keys))
    if wanted.workload and issubclass(sums.model, OwnerUsage):
        sums = sums.filter(_is_workload(wanted.workload))
    return sums.filter(namespace=wanted.namespace) if wanted.namespace else sums


def _is_workload(workload: str) -> Q:
    """Filters to a workload and those that it makes, by their names: rows outlive the objects."""
    kind, _, name = workload.partition("/")
    made, ending = MADE.get(kind, ("", ""))
    found = Q(workload=workload)
    return found | Q(workload__regex=f"^{made}/{re.escape(name)}-{ending}$") if made else found


def _chosen(clusters: Mapping[int, str], wanted: UsageFilter) -> list[int]:
    return [key for key, name in clusters.items() if not wanted.cluster or name == wanted.cluster]


def _grouped(sums: Any, *columns: str) -> Any:
    added = {f"{PREFIX}{name}": Sum(name) for name in (*(use.value for use in GpuUse), "rated", "under_used")}
    return sums.order_by().values(*columns).annotate(**added)


def _hours(group: Mapping[str, Any]) -> dict[GpuUse, float]:
    return {use: group[f"{PREFIX}{use}"] for use in GpuUse}


def _under_used(group: Mapping[str, Any]) -> dict[UsePart, float]:
    return {UsePart.UNDER_USED: group[f"{PREFIX}under_used"]}


def _days(first: date, last: date) -> dict[date, UsageLine]:
    days = (first + timedelta(days=number) for number in range((last - first).days + 1))
    return {day: UsageLine(day.isoformat(), day=day) for day in days}


def _ordered(lines: Iterable[UsageLine], ordering: str, currency: str) -> list[UsageLine]:
    by_name = sorted(lines, key=lambda line: (line.cluster, line.name))
    if ordering == NAME:
        return by_name
    return sorted(by_name, key=lambda line: -_measure(line.amount, ordering, currency))


def _measure(amount: UsageAmount, ordering: str, currency: str) -> float:
    if ordering == COST:
        return amount.costs.get(currency, 0.0)
    return amount.total if ordering == HOURS else amount.hours[GpuUse(ordering.removeprefix("-"))]


def _lines_by_owner(
    sums: Any, wanted: UsageFilter, keys: Iterable[str], prices: PoolPrices, clusters: Mapping[int, str],
    free: Mapping[int, UsageAmount], start: int, most: int,
) -> list[UsageLine]:  # fmt: skip
    """Returns the lines of namespaces or workloads, and one more if there are more. Two queries.

    The first one orders all owners by one sum. All sums of all owners would take three times as long.
    """
    columns = ("cluster", "namespace", *(("workload",) if wanted.by == WORKLOAD else ()))
    every = sums.order_by().values(*columns)
    by_name = ("namespace", *columns[2:], "cluster")
    if wanted.ordering == NAME:
        ordered = every.distinct().order_by(*by_name)
    else:
        measured = every.annotate(measure=Sum(_measured(wanted.ordering, keys, prices)))
        ordered = measured.order_by("-measure", *by_name)
    rows = ordered[start : start + most + 1]
    owners = [tuple(row[name] for name in columns) for row in rows]
    lines = {owner: _line_of(*owner, clusters=clusters) for owner in owners}
    if len(owners) <= NAMED_AT_MOST:
        sums = sums.filter(**{f"{name}__in": {row[place] for row in owners} for place, name in enumerate(columns)})
    names: dict[Any, set[str]] = defaultdict(set)
    starts = [start for start, _ in prices.ranges]
    sums = _with_price_range(sums, prices)
    for row in _grouped(sums, *columns, "pools", *(("since",) if len(starts) > 1 else ())):
        owner = tuple(row[name] for name in columns)
        if owner in lines:
            names[owner].add(prices.names(row["pools"]))
        if owner in lines and row["namespace"]:
            price, parts = prices.of(row["pools"], row.get("since", starts[0])), _under_used(row)
            lines[owner].amount.add(_hours(row), price, parts, row[f"{PREFIX}rated"])
    for owner, line in lines.items():
        if not line.namespace:
            line.amount = free[owner[0]]
        line.pools = ", ".join(sorted(names[owner]))
    return list(lines.values())


def _lines_by_label(
    sums: Any, prices: PoolPrices, clusters: Mapping[int, str], free: Mapping[int, UsageAmount]
) -> list[UsageLine]:
    """Returns a line for each value of the owner label. Two queries: workloads are added up here."""
    owners = owners_of(clusters)
    lines: dict[str, UsageLine] = {}
    starts = [start for start, _ in prices.ranges]
    held = _with_price_range(sums.exclude(namespace=""), prices)
    for row in _grouped(held, "cluster", "namespace", "workload", "pools", *(("since",) if len(starts) > 1 else ())):
        owner = owners.get((row["cluster"], row["namespace"], row["workload"]), "")
        line = lines.setdefault(owner, UsageLine(owner or NO_OWNER_LABEL, owner=owner))
        price = prices.of(row["pools"], row.get("since", starts[0]))
        line.amount.add(_hours(row), price, _under_used(row), row[f"{PREFIX}rated"])
    not_allocated = (UsageLine(NOT_ALLOCATED, clusters.get(key, ""), amount=amount) for key, amount in free.items())
    return [*lines.values(), *not_allocated]


def _with_price_range(sums: Any, prices: PoolPrices) -> Any:
    """Adds `since`, the first day of the range of prices of a row, if there are several."""
    if len(prices.ranges) == 1:
        return sums
    cases = (When(day__lte=ends, then=Value(start)) for start, ends in prices.ranges)
    return sums.annotate(since=Case(*cases, output_field=DateField()))


def _line_of(cluster: int, namespace: str, workload: str = "", *, clusters: Mapping[int, str]) -> UsageLine:
    if not namespace:
        return UsageLine(NOT_ALLOCATED, clusters.get(cluster, ""))
    return UsageLine(workload or namespace, clusters.get(cluster, ""), namespace, workload, cluster_id=cluster)


def _measured(ordering: str, keys: Iterable[str], prices: PoolPrices) -> Any:
    """Returns the sort value of one row."""
    if ordering not in (HOURS, COST):
        return F(ordering.removeprefix("-"))
    hours = sum((F(use.value) for use in GpuUse), Value(0.0))
    return hours * _price(keys, prices) if ordering == COST else hours


def _price(keys: Iterable[str], prices: PoolPrices) -> Case:
    """Returns the price of a row's pools in the main currency; 0 without one."""
    by_price: dict[tuple[date, date, Decimal], list[str]] = defaultdict(list)
    for key in sorted(keys):
        for starts, ends in prices.ranges:
            price = prices.of(key, starts)
            if price is not None and price.amount and price.currency == prices.book.main_currency:
                by_price[starts, ends, price.amount].append(key)
    cases = [
        When(pools__in=of, day__gte=starts, day__lte=ends, then=Value(float(amount)))
        for (starts, ends, amount), of in by_price.items()
    ]
    return Case(*cases, default=Value(0.0), output_field=FloatField())


def _coverage(clusters: Iterable[int], first: date, last: date, *, now: datetime) -> Coverage:
    """Returns the recorded hours of these clusters. One query."""
    recorded, uncounted, inferred = Counter[date](), 0, 0
    begun: dict[int, datetime] = {}
    columns = ("cluster", "day", "hours", "uncounted", "cluster__added_at")
    rows = UsageDay.objects.filter(cluster__in=clusters, day__lte=last).order_by("day")
    for cluster, day, hours, without, added in rows.values_list(*columns):
        lowest = (hours & -hours).bit_length() - 1
        begun.setdefault(cluster, _begin_of(day, max(0, lowest)))
        if day >= first:
            recorded[day] += hours.bit_count()
            uncounted = max(uncounted, without)
            inferred += sum(_begin_of(day, place) < added for place in range(24) if hours >> place & 1)
    opens, ends = _begin_of(first), _begin_of(last) + timedelta(days=1)
    over = min(ends, (now.astimezone(UTC) - RECORDED_WITHIN).replace(minute=0, second=0, microsecond=0))
    expected = sum(max(0, int((over - max(opens, since)).total_seconds() // 3600)) for since in begun.values())
    return Coverage(recorded, expected, uncounted, inferred)


def _begin_of(day: date, hour: int = 0) -> datetime:
    return datetime(day.year, day.month, day.day, hour, tzinfo=UTC)
