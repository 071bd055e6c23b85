"""One line of usage: GPU-hours by use, and what they cost. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal

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
    priced: float = 0.0  # the cost of the hours with a price
    priced_idle: float = 0.0  # of these, of idle hours
    unpriced: float = 0.0  # GPU-hours without a price

    def add(self, hours: Mapping[GpuUse, float], price: Decimal | None) -> None:
        for use, number in hours.items():
            self.hours[use] += number
        if price is None:
            self.unpriced += sum(hours.values())
        else:
            self.priced += sum(hours.values()) * float(price)
            self.priced_idle += hours[GpuUse.IDLE] * float(price)

    @property
    def total(self) -> float:
        return sum(self.hours.values())

    @property
    def has_cost(self) -> bool:
        """Tells whether any hour has a price."""
        return not self.unpriced or self.unpriced < self.total * (1 - 1e-9)

    @property
    def cost(self) -> float | None:
        return self.priced if self.has_cost else None

    @property
    def cost_idle(self) -> float | None:
        return self.priced_idle if self.has_cost else None


@dataclass
class UsageLine:
    name: str
    cluster: str = ""
    namespace: str = ""
    workload: str = ""
    pools: str = ""  # names; several if nodes are in several pools
    price: Decimal | None = None  # of a line of pools
    day: date | None = None
    amount: UsageAmount = field(default_factory=UsageAmount)

    @property
    def has_pool(self) -> bool:
        return self.pools not in (NO_POOL, GONE_POOL)
