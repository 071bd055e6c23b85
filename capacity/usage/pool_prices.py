"""The prices of the pools that a user sees, and the pools that lack one."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from django.db.models import Q
from django.db.models.fields.json import KeyTextTransform

from capacity.models import GpuPrice
from capacity.usage.price_book import BEGINNING, LABELLED, BookedPrice, GpuKind, HourPrice, PriceBook
from capacity.usage.usage_lines import GONE_POOL, NO_POOL, UsageLine
from fleet.models import NodeSums, Pool
from gpu.labels import CAPACITY_TYPES as CAPACITY_LABELS
from people.models import User


@dataclass(frozen=True)
class UnpricedPool:
    pool: Pool
    hours: float
    products: Sequence[str]


class PoolPrices:
    """The visible pools, and the price of each set of pools on a day. Two queries, and two more with product prices."""

    def __init__(self, user: User, first: date, last: date) -> None:
        pools = Pool.objects.visible_to(user).select_related("cluster")
        self.pools = {pool.pk: pool for pool in pools}
        rows = _booked(GpuPrice.objects.visible_to(user).filter(valid_from__lte=last))
        undated = {key: _price_of(pool.price_per_gpu_hour) for key, pool in self.pools.items()}
        self.book = PriceBook(rows, undated, _gpu_kinds(pools) if any(row.pool is None for row in rows) else {})
        self.ranges = self.book.ranges(first, last)
        self.starts = [start for start, _ in self.ranges]
        self._known: dict[tuple[str, date], HourPrice | None] = {}

    def of(self, keys: str, day: date) -> HourPrice | None:
        """Returns the price of nodes in these pools. None: unknown, or the pools have different prices."""
        start = self.starts[max(0, bisect_right(self.starts, day) - 1)]
        if (keys, start) not in self._known:
            prices = {self.book.of(pool.pk, start) for pool in self._in(keys)} - {None}
            self._known[keys, start] = prices.pop() if len(prices) == 1 else None
        return self._known[keys, start]

    def names(self, keys: str) -> str:
        if not keys:
            return NO_POOL
        return ", ".join(sorted(pool.name for pool in self._in(keys))) or GONE_POOL

    def without_price(self, keys: str) -> list[Pool]:
        """Returns the pools without a price on the last day."""
        return [pool for pool in self._in(keys) if self.book.of(pool.pk, self.ranges[-1][1]) is None]

    def _in(self, keys: str) -> list[Pool]:
        return [self.pools[key] for text in keys.split(",") if text and (key := int(text)) in self.pools]


@dataclass(frozen=True)
class PoolPrice:
    """The price of a GPU-hour of one pool on a day, with where it comes from."""

    price: HourPrice | None  # None: unknown, or several
    in_force: Mapping[GpuKind | None, BookedPrice | None]  # under None: the pool's own price
    gpus: int | None  # of the pool, that this price is for; None: unknown

    @property
    def is_own(self) -> bool:
        return None in self.in_force

    @property
    def since(self) -> date | None:
        """Returns the newest day from which one of the prices holds. None: from the beginning, or no price."""
        days = {booked.valid_from for booked in self.in_force.values() if booked} - {BEGINNING}
        return max(days, default=None)

    @property
    def of_whole_pool(self) -> HourPrice | None:
        if self.price is None or self.gpus is None:
            return None
        return HourPrice(self.price.amount * self.gpus, self.price.currency)


def price_of_pool(pool: Pool, user: User, gpus: int | None, *, day: date) -> PoolPrice:
    """Returns the price that reports use on this day. One query, and one more with product prices."""
    rows = list(GpuPrice.objects.visible_to(user).filter(Q(pool=pool) | Q(pool=None), valid_from__lte=day))
    kinds = _gpu_kinds([pool]) if any(row.pool_id is None for row in rows) else {}
    book = PriceBook(_booked(rows), {pool.pk: _price_of(pool.price_per_gpu_hour)}, kinds)
    return PoolPrice(book.of(pool.pk, day), book.in_force(pool.pk, day), gpus)


def _booked(rows: Iterable[GpuPrice]) -> list[BookedPrice]:
    return [
        BookedPrice(row.valid_from, _price_of(row.amount, row.currency), row.pool_id, row.product, row.capacity_type)
        for row in rows
    ]


def _gpu_kinds(pools: Iterable[Pool]) -> Mapping[int, Collection[GpuKind]]:
    """Returns by pool the products and capacity types of its nodes now. One query."""
    members = Pool.nodes.through.objects.filter(pool__in=[pool.pk for pool in pools]).exclude(node__gpu_product="")
    labels = {f"type_{place}": KeyTextTransform(key, "node__labels") for place, key in enumerate(CAPACITY_LABELS)}
    rows = members.order_by().annotate(**labels).values_list("pool_id", "node__gpu_product", *labels).distinct()
    found: dict[int, set[GpuKind]] = defaultdict(set)
    for pool, product, *values in rows:
        label = next((value for value in values if value), "").lower()
        found[pool].add(GpuKind(product, LABELLED.get(label, "")))
    return found


def products_of(user: User) -> Mapping[str, Collection[str]]:
    """Returns by product of the visible nodes the sets of pools that have it. One query."""
    found: dict[str, set[str]] = defaultdict(set)
    rows = NodeSums.objects.visible_to(user).exclude(gpu_product="").order_by()
    for keys, product in rows.values_list("pools", "gpu_product").distinct():
        found[product].add(keys)
    return found


def _price_of(amount: Decimal | None, currency: str = "") -> HourPrice | None:
    return None if amount is None else HourPrice(amount, currency)


def unpriced_pools(user: User, lines: Mapping[tuple[int, str], UsageLine], prices: PoolPrices) -> list[UnpricedPool]:
    """Returns the pools without a price that had hours, the most hours first. One query."""
    hours: dict[int, float] = defaultdict(float)
    for (_, keys), line in lines.items():
        for pool in prices.without_price(keys) if keys != GONE_POOL else ():
            hours[pool.pk] += line.amount.total
    products: dict[int, set[str]] = defaultdict(set)
    for product, sets in products_of(user).items():
        for text in filter(None, ",".join(sets).split(",")):
            products[int(text)].add(product)
    found = [UnpricedPool(prices.pools[key], number, sorted(products[key])) for key, number in hours.items()]
    return sorted(found, key=lambda each: -each.hours)
