"""Ready-made expressions for inference servers, from `data/indicators.toml`. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from gpu.entry_files import entry_of, make_entries, read_file
from health.telemetry.service_levels.expression import read_expression

FILE = Path(__file__).parent / "data" / "indicators.toml"


@dataclass(frozen=True, kw_only=True)
class Indicator:
    """A service level that an inference server exports."""

    key: str
    title: str
    server: str
    expression: str  # its value
    samples: str  # base of the value, such as requests
    unit: str = ""  # blank: a ratio
    is_higher_better: bool = False
    source: str
    date: date


def _indicator(row: Mapping[str, Any]) -> Indicator:
    indicator = entry_of(row, Indicator)
    read_expression(indicator.expression)
    read_expression(indicator.samples)
    return indicator


INDICATORS = {each.key: each for each in make_entries(FILE, "indicators", read_file(FILE)["indicators"], _indicator)}
