"""How a bench speaks: one JSON line a figure; it fails when one is not ok."""

import json
import os
import statistics
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Figures:
    """The figures of one bench in one run, all with the same conditions."""

    bench: str
    conditions: dict[str, Any]
    failed: list[str] = field(default_factory=list)

    def at_least(self, name: str, value: float, target: float, unit: str) -> None:
        self._say(name, value, unit, target=target, is_ok=value >= target)

    def at_most(self, name: str, value: float, target: float, unit: str) -> None:
        self._say(name, value, unit, target=target, is_ok=value <= target)

    def beside(self, name: str, value: float, unit: str) -> None:
        """A figure to compare others with: it has no target of its own."""
        self._say(name, value, unit, target=None, is_ok=True)

    def lacks(self, name: str, because: str) -> None:
        """A comparator that could not run: the bench is not ok, whatever the others say."""
        self.failed.append(f"{name} ({because})")

    def end(self) -> None:
        """Exit as the figures say."""
        sys.exit(f"not ok: {', '.join(self.failed)}" if self.failed else 0)

    def _say(self, name: str, value: float, unit: str, *, target: float | None, is_ok: bool) -> None:
        if not is_ok:
            self.failed.append(name)
        line = {
            "bench": self.bench,
            "name": name,
            "value": round(value, 3),
            "unit": unit,
            "target": target,
            "ok": is_ok,
        }
        print(json.dumps(line | self.conditions | {"load": round(os.getloadavg()[0], 2)}), flush=True)


def median_of_three(measure: Callable[[], float]) -> float:
    return statistics.median(measure() for _ in range(3))


def percentile(values: Iterable[float], share: float) -> float:
    """The smallest value that this share of them does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
