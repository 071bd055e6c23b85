"""The prices of the pools that a user sees, and the pools that lack one."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from capacity.usage.usage_lines import GONE_POOL, NO_POOL, UsageLine
from fleet.models import NodeSums, Pool
from people.models import User


@dataclass(frozen=True)
class UnpricedPool:
    pool: Pool
    hours: float
    products: Sequence[str]


class PoolPrices:
    """The visible pools, and the price of each set of pools."""

    def __init__(self, user: User) -> None:
        pools = Pool.objects.visible_to(user).select_related("cluster")
        self.pools = {pool.pk: pool for pool in pools}

    def of(self, keys: str) -> Decimal | None:
        prices = {pool.price_per_gpu_hour for pool in self._in(keys) if pool.price_per_gpu_hour is not None}
        return prices.pop() if len(prices) == 1 else None

    def names(self, keys: str) -> str:
        if not keys:
            return NO_POOL
        return ", ".join(sorted(pool.name for pool in self._in(keys))) or GONE_POOL

    def without_price(self, keys: str) -> list[Pool]:
        return [pool for pool in self._in(keys) if pool.price_per_gpu_hour is None]

    def _in(self, keys: str) -> list[Pool]:
        return [self.pools[key] for text in keys.split(",") if text and (key := int(text)) in self.pools]


def unpriced_pools(user: User, lines: Mapping[tuple[int, str], UsageLine], prices: PoolPrices) -> list[UnpricedPool]:
    """Returns the pools without a price that had hours, the most hours first. One query."""
    hours: dict[int, float] = defaultdict(float)
    for (_, keys), line in lines.items():
        for pool in prices.without_price(keys) if keys != GONE_POOL else ():
            hours[pool.pk] += line.amount.total
    products: dict[int, set[str]] = defaultdict(set)
    rows = NodeSums.objects.visible_to(user).exclude(gpu_product="").order_by()
    for keys, product in rows.values_list("pools", "gpu_product").distinct():
        for text in filter(None, keys.split(",")):
            products[int(text)].add(product)
    found = [UnpricedPool(prices.pools[key], number, sorted(products[key])) for key, number in hours.items()]
    return sorted(found, key=lambda each: -each.hours)
