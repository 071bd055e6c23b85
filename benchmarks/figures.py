"""How a bench speaks: one JSON line a figure; it fails when one is not ok.

Beside each time stands how many times the reference it is: that can be compared with another machine's.
"""

import json
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from benchmarks.reference import reference_ms

REFERENCE = "reference_ms"
IN_MS = {"ms": 1.0, "s": 1000.0}


@dataclass
class Figures:
    """The figures of one bench and the conditions they hold under; `suffix` tells one size from another."""

    bench: str
    conditions: dict[str, Any]
    suffix: str = ""
    failed: list[str] = field(default_factory=list)
    reference_ms: float = field(default=0.0, init=False)

    def measure_reference(self) -> None:
        """Of every run by itself: the hours of one machine differ, too."""
        self.reference_ms = reference_ms()
        self.beside(REFERENCE, self.reference_ms, "ms")

    def under(self, suffix: str, **more: Any) -> "Figures":
        """The same bench under other conditions: what fails there fails here."""
        return Figures(self.bench, self.conditions | more, suffix, self.failed)

    def at_least(self, name: str, value: float, target: float, unit: str, **more: Any) -> None:
        self._say(name, value, unit, target=target, is_ok=value >= target, more={"bound": "at least"} | more)

    def at_most(self, name: str, value: float, target: float, unit: str, **more: Any) -> None:
        self._say(name, value, unit, target=target, is_ok=value <= target, more={"bound": "at most"} | more)

    def beside(self, name: str, value: float, unit: str, **more: Any) -> None:
        """A figure to compare others with: it has no target of its own."""
        self._say(name, value, unit, target=None, is_ok=True, more=more)

    def lacks(self, name: str, reason: str) -> None:
        """A comparator that could not run: the bench is not ok, whatever the others say."""
        self.failed.append(f"{name}{self.suffix} ({reason})")

    def per_reference(self, value: float, unit: str) -> float:
        return round(value * IN_MS[unit] / self.reference_ms, 3)

    def end(self) -> None:
        """Exit as the figures say."""
        sys.exit(f"not ok: {', '.join(self.failed)}" if self.failed else 0)

    def _say(self, name: str, value: float, unit: str, *, target: float | None, is_ok: bool, more: dict) -> None:
        if not is_ok:
            self.failed.append(name + self.suffix)
        line = {
            "bench": self.bench,
            "name": name + self.suffix,
            "value": round(value, 4),
            "unit": unit,
            "target": target,
            "ok": is_ok,
        }
        if unit in IN_MS and self.reference_ms and name != REFERENCE:
            line["/ reference"] = self.per_reference(value, unit)
        print(json.dumps(line | more | self.conditions | {"load": round(os.getloadavg()[0], 2)}), flush=True)


def percentile(values: Iterable[float], share: float) -> float:
    """The smallest value that this share of them does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
