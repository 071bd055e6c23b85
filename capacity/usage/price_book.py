"""The price of a GPU-hour of a pool on a day: its own price, else the price of its product. Pure."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

CAPACITY_TYPES: Mapping[str, str] = {
    "on-demand": "on demand",
    "reserved": "reserved",
    "spot": "spot",
    "owned": "owned",
}
# Values of the clouds' labels (`gpu.labels.CAPACITY_TYPES`) by ours.
LABELLED = {
    "spot": "spot", "preemptible": "spot", "on-demand": "on-demand", "on_demand": "on-demand", "regular": "on-demand",
    "standard": "on-demand", "reserved": "reserved", "capacity_block": "reserved",
}  # fmt: skip


BEGINNING = date(2000, 1, 1)  # from which the first price of a pool holds


@dataclass(frozen=True)
class HourPrice:
    amount: Decimal
    currency: str = ""  # ISO 4217; blank: the one currency of this installation

    def __str__(self) -> str:
        return f"{self.amount.normalize():f} {self.currency}".strip()


@dataclass(frozen=True)
class BookedPrice:
    """A price that holds from a day until the next one of the same pool, or of the same product and capacity type."""

    valid_from: date
    price: HourPrice | None  # None: the pool has no price of its own from then on
    pool: int | None = None  # None: of every pool of the product
    product: str = ""
    capacity_type: str = ""  # blank: every one without a price of its own


@dataclass(frozen=True)
class GpuKind:
    product: str
    capacity_type: str = ""  # blank: unknown


class PriceBook:
    def __init__(
        self,
        rows: Iterable[BookedPrice],
        undated: Mapping[int, HourPrice | None],  # by pool; holds on every day of a pool without dated prices
        kinds: Mapping[int, Collection[GpuKind]],  # by pool: the present GPU kinds of its nodes
    ) -> None:
        self.undated, self.kinds = undated, kinds
        self.of_pools: dict[int, list[BookedPrice]] = defaultdict(list)
        self.of_kinds: dict[tuple[str, str], list[BookedPrice]] = defaultdict(list)
        for row in sorted(rows, key=lambda each: each.valid_from):
            if row.pool is not None:
                self.of_pools[row.pool].append(row)
            else:
                self.of_kinds[row.product, row.capacity_type].append(row)

    def of(self, pool: int, day: date) -> HourPrice | None:
        """Returns the price of the pool on this day. None: unknown, or its nodes have products of several prices."""
        prices = {booked.price if booked else None for booked in self.in_force(pool, day).values()}
        return prices.pop() if len(prices) == 1 else None

    def in_force(self, pool: int, day: date) -> Mapping[GpuKind | None, BookedPrice | None]:
        """Returns the pool's own price (under None), else the price of each GPU kind of its nodes. None: no price."""
        undated = BookedPrice(BEGINNING, self.undated.get(pool), pool)
        own = _valid(self.of_pools[pool], day) if pool in self.of_pools else undated
        if own is not None and own.price is not None:
            return {None: own}
        kinds = sorted(self.kinds.get(pool, ()), key=lambda kind: (kind.product, kind.capacity_type))
        return {kind: self._price_of_kind(kind, day) for kind in kinds}

    def _price_of_kind(self, kind: GpuKind, day: date) -> BookedPrice | None:
        exact = _valid(self.of_kinds.get((kind.product, kind.capacity_type), ()), day)
        return exact or _valid(self.of_kinds.get((kind.product, ""), ()), day)

    def ranges(self, first: date, last: date) -> list[tuple[date, date]]:
        """Returns the parts of a period in which no price changes."""
        rows = [row for rows in (*self.of_pools.values(), *self.of_kinds.values()) for row in rows]
        starts = sorted({first, *(row.valid_from for row in rows if first < row.valid_from <= last)})
        ends = [start - timedelta(days=1) for start in starts[1:]]
        return list(zip(starts, [*ends, last], strict=True))

    @property
    def main_currency(self) -> str:
        """Returns the currency of most prices: amounts of others are not compared with it."""
        rows = [row.price for rows in (*self.of_pools.values(), *self.of_kinds.values()) for row in rows]
        found = Counter(price.currency for price in (*rows, *self.undated.values()) if price is not None)
        return max(found, key=lambda each: (found[each], each), default="")


def _valid(rows: Iterable[BookedPrice], day: date) -> BookedPrice | None:
    return max((row for row in rows if row.valid_from <= day), key=lambda each: each.valid_from, default=None)
