"""One line of usage: GPU-hours by use, and what they cost. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date

from capacity.usage.price_book import HourPrice
from health.telemetry.usage import GpuUse

TITLES: Mapping[GpuUse, tuple[str, str]] = {
    GpuUse.USED: ("Used", "Allocated, and at least 5 % busy in the mean of the hour"),
    GpuUse.IDLE: ("Idle", "Allocated, and less than 5 % busy in the mean of the hour"),
    GpuUse.UNMEASURED: ("Not measured", "Allocated, but telemetry covered less than 90 % of the hour"),
    GpuUse.UNALLOCATED: ("Unallocated", "Free, on a node that accepts pods"),
    GpuUse.OUT_OF_SERVICE: ("Out of service", "Free, but unhealthy or on a node that is cordoned or not ready"),
    GpuUse.UNKNOWN: ("Unknown", "The pods of the cluster were not observed"),
}
NO_POOL, GONE_POOL = "no pool", "deleted pool"


@dataclass
class UsageAmount:
    """GPU-hours by use, and their cost."""

    hours: dict[GpuUse, float] = field(default_factory=lambda: dict.fromkeys(GpuUse, 0.0))
    costs: dict[str, float] = field(default_factory=dict)  # of the hours with a price, by currency
    costs_idle: dict[str, float] = field(default_factory=dict)  # of these, of idle hours
    unpriced: float = 0.0  # GPU-hours without a price

    def add(self, hours: Mapping[GpuUse, float], price: HourPrice | None) -> None:
        for use, number in hours.items():
            self.hours[use] += number
        if price is None:
            self.unpriced += sum(hours.values())
        else:
            amount, currency = float(price.amount), price.currency
            self.costs[currency] = self.costs.get(currency, 0.0) + sum(hours.values()) * amount
            self.costs_idle[currency] = self.costs_idle.get(currency, 0.0) + hours[GpuUse.IDLE] * amount

    @property
    def total(self) -> float:
        return sum(self.hours.values())

    @property
    def has_cost(self) -> bool:
        """Tells whether any hour has a price."""
        return not self.unpriced or self.unpriced < self.total * (1 - 1e-9)

    @property
    def cost(self) -> float | None:
        """Returns the cost. None: no hour has a price, or the prices are in several currencies."""
        return _only(self.costs) if self.has_cost else None

    @property
    def cost_idle(self) -> float | None:
        return _only(self.costs_idle) if self.has_cost else None

    @property
    def cost_text(self) -> str:
        """Returns `24.00 EUR + 3.00 USD`. Blank: no hour has a price."""
        return _text(self.costs) if self.has_cost else ""

    @property
    def cost_idle_text(self) -> str:
        return _text(self.costs_idle) if self.has_cost else ""

    @property
    def currencies(self) -> str:
        """Returns the currencies of the cost. Blank: the one currency of this installation."""
        return ", ".join(sorted(filter(None, self.costs)))


def _only(costs: Mapping[str, float]) -> float | None:
    return sum(costs.values()) if len(costs) <= 1 else None


def _text(costs: Mapping[str, float]) -> str:
    amounts = [f"{amount:,.2f} {currency}".strip() for currency, amount in sorted(costs.items())]
    return " + ".join(amounts) or "0.00"


@dataclass
class UsageLine:
    name: str
    cluster: str = ""
    namespace: str = ""
    workload: str = ""
    pools: str = ""  # names; several if nodes are in several pools
    price: HourPrice | None = None  # of a line of pools, on its last day
    day: date | None = None
    cluster_id: int = 0  # of a line of a namespace or workload
    amount: UsageAmount = field(default_factory=UsageAmount)

    @property
    def has_pool(self) -> bool:
        return self.pools not in (NO_POOL, GONE_POOL)
