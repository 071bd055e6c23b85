"""One line of usage: GPU-hours by use, and what they cost. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from types import MappingProxyType

from capacity.usage.price_book import HourPrice
from health.telemetry.usage import GpuUse

TITLES: Mapping[GpuUse, tuple[str, str]] = {
    GpuUse.USED: ("Used", "Allocated, and at least 5 % busy in the mean of the hour"),
    GpuUse.IDLE: ("Idle", "Allocated, and less than 5 % busy in the mean of the hour"),
    GpuUse.UNMEASURED: ("Not measured", "Allocated, but telemetry covered less than 90 % of the hour"),
    GpuUse.UNALLOCATED: ("Unallocated", "Free, on a node that accepts pods"),
    GpuUse.QUARANTINED: ("Quarantined", "Free, but unhealthy or on a cordoned node"),
    GpuUse.IN_REPAIR: ("In repair", "Free, on a node that is not ready, or that an operation or a plan changes"),
    GpuUse.OUT_OF_SERVICE: ("Out of service", "Quarantined or in repair: older hours do not tell which"),
    GpuUse.UNKNOWN: ("Unknown", "The pods of the cluster were not observed"),
}
NO_POOL, GONE_POOL = "no pool", "deleted pool"


class UsePart(StrEnum):
    """Parts of uses: the first is a part of the used hours, the others are the unallocated hours."""

    UNDER_USED = "under_used"
    USABLE = "usable"
    STRANDED = "stranded"
    NOT_SPLIT = "not_split"


PART_TITLES: Mapping[UsePart, tuple[str, str]] = {
    UsePart.UNDER_USED: ("Under-used, estimate", "Used hours that would be saved at 50 % utilisation"),
    UsePart.USABLE: ("Usable", "Unallocated, and the usual pod fits"),
    UsePart.STRANDED: ("Stranded", "Unallocated, but no usual pod fits: CPU, memory, taint, MIG profile or leftover"),
    UsePart.NOT_SPLIT: ("Usable or stranded", "Unallocated, in days without samples of free GPUs"),
}
Costs = dict[str, float]  # by currency


@dataclass
class UsageAmount:
    """GPU-hours by use and by part of a use, and their cost."""

    hours: dict[GpuUse, float] = field(default_factory=lambda: dict.fromkeys(GpuUse, 0.0))
    parts: dict[UsePart, float] = field(default_factory=lambda: dict.fromkeys(UsePart, 0.0))
    rated: float = 0.0  # used hours with an estimate of under-use
    costs: Costs = field(default_factory=dict)  # of the hours with a price
    costs_of: dict[str, Costs] = field(default_factory=dict)  # of these, by use and by part
    unpriced: float = 0.0  # GPU-hours without a price

    def add(
        self,
        hours: Mapping[GpuUse, float],
        price: HourPrice | None,
        parts: Mapping[UsePart, float] = MappingProxyType({}),
        rated: float = 0.0,
    ) -> None:
        for use, number in hours.items():
            self.hours[use] += number
        for part, number in parts.items():
            self.parts[part] += number
        self.rated += rated
        if price is None:
            self.unpriced += sum(hours.values())
            return
        amount, currency = float(price.amount), price.currency
        self.costs[currency] = self.costs.get(currency, 0.0) + sum(hours.values()) * amount
        for key, number in (*hours.items(), *parts.items()):
            of = self.costs_of.setdefault(key, {})
            of[currency] = of.get(currency, 0.0) + number * amount

    def without(self, others: Sequence["UsageAmount"]) -> "UsageAmount":
        """Returns the rest of the line without the others."""
        return UsageAmount(
            {use: max(0.0, number - sum(each.hours[use] for each in others)) for use, number in self.hours.items()},
            {part: max(0.0, number - sum(each.parts[part] for each in others)) for part, number in self.parts.items()},
            max(0.0, self.rated - sum(each.rated for each in others)),
            _rest(self.costs, [each.costs for each in others]),
            {key: _rest(own, [each.costs_of.get(key, {}) for each in others]) for key, own in self.costs_of.items()},
            max(0.0, self.unpriced - sum(each.unpriced for each in others)),
        )

    @property
    def total(self) -> float:
        return sum(self.hours.values())

    @property
    def has_cost(self) -> bool:
        """Tells whether any hour has a price."""
        return not self.unpriced or self.unpriced < self.total * (1 - 1e-9)

    @property
    def is_rated(self) -> bool:
        """Tells whether any used hour has an estimate of what was under-used."""
        return self.rated > 0

    @property
    def cost(self) -> float | None:
        """Returns the cost. None: no hour has a price, or the prices are in several currencies."""
        return _only(self.costs) if self.has_cost else None

    @property
    def cost_idle(self) -> float | None:
        return self.cost_of(GpuUse.IDLE)

    def cost_of(self, key: GpuUse | UsePart) -> float | None:
        """Returns the cost of a use or of a part."""
        return _only(self.costs_of.get(key, {})) if self.has_cost else None

    @property
    def cost_text(self) -> str:
        """Returns `24.00 EUR + 3.00 USD`. Blank: no hour has a price."""
        return _text(self.costs) if self.has_cost else ""

    @property
    def cost_idle_text(self) -> str:
        return self.cost_text_of(GpuUse.IDLE)

    def cost_text_of(self, key: GpuUse | UsePart) -> str:
        return _text(self.costs_of.get(key, {})) if self.has_cost else ""

    @property
    def currencies(self) -> str:
        """Returns the currencies of the cost. Blank: the one currency of this installation."""
        return ", ".join(sorted(filter(None, self.costs)))


def _rest(costs: Costs, others: Sequence[Costs]) -> Costs:
    return {
        currency: max(0.0, cost - sum(each.get(currency, 0.0) for each in others)) for currency, cost in costs.items()
    }


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
    recorded: int | None = None  # of a day: its recorded hours, added up over the clusters
    owner: str = ""  # value of the owner label; of that grouping
    cluster_id: int = 0  # of a line of a namespace or workload
    amount: UsageAmount = field(default_factory=UsageAmount)

    @property
    def known_amount(self) -> UsageAmount | None:
        """Returns the amount. None: a day of which no hour is recorded."""
        return None if self.recorded == 0 and not self.amount.total else self.amount

    @property
    def has_pool(self) -> bool:
        return self.pools not in (NO_POOL, GONE_POOL)
