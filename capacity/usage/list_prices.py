"""List prices of clouds by product, from `data/list_prices.toml`. They are suggestions, and are never charged. Pure."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path

from gpu.entry_files import entry_of, make_entries, read_file

FILE = Path(__file__).parent / "data" / "list_prices.toml"


@dataclass(frozen=True)
class PriceSource:
    key: str
    title: str
    source: str
    date: date


@dataclass(frozen=True)
class PriceEntry:
    products: str
    offers: tuple[str, ...]  # `aws p5 6.88`: source, instance type, US dollars for a GPU-hour

    def covers(self, product: str) -> bool:
        return re.search(rf"(?<![A-Z0-9])(?:{self.products})(?![A-Z0-9])", product) is not None


@dataclass(frozen=True)
class ListPrice:
    """The price of one GPU-hour in US dollars, on demand."""

    usd: str  # without trailing zeros
    instance: str
    source: PriceSource


_FILE = read_file(FILE)
SOURCES = {
    each.key: each for each in make_entries(FILE, "sources", _FILE["sources"], lambda row: entry_of(row, PriceSource))
}
ENTRIES = make_entries(FILE, "prices", _FILE["prices"], lambda row: entry_of(row, PriceEntry))


def list_prices_of(products: Iterable[str]) -> list[ListPrice]:
    """Returns the prices of these products, the lowest first."""
    found = {
        (usd, instance, source)
        for product in products
        for entry in ENTRIES
        if entry.covers(product)
        for source, instance, usd in (offer.split() for offer in entry.offers)
    }
    return [
        ListPrice(f"{Decimal(usd).normalize():f}", instance, SOURCES[source])
        for usd, instance, source in sorted(found, key=lambda each: (float(each[0]), each))
    ]
