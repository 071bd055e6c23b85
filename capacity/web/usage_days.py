"""GPU-hours by use, a stacked bar for each day, for the pages that draw them."""

from dataclasses import dataclass
from typing import Any

from django.urls import reverse

from capacity.usage.usage_filter import DAY
from capacity.usage.usage_lines import TITLES, UsageLine
from capacity.usage.usage_report import UsageReport
from health.telemetry.usage import GpuUse

TALL, WIDE, GAP = 140, 20, 4  # pixels of the picture and of a day's bar


@dataclass(frozen=True)
class DayPart:
    use: GpuUse
    y: float
    height: float
    words: str


@dataclass(frozen=True)
class DayBar:
    line: UsageLine
    x: int
    segments: list[DayPart]

    @property
    def cells(self) -> list[tuple[str, float]]:
        return cells_of(self.line)


def days_context(report: UsageReport) -> dict[str, Any]:
    """Returns what `capacity/usage/_days.html` shows."""
    return {
        "report": report,
        "uses": [(use, *TITLES[use], hours) for use, hours in report.total.hours.items()],
        "bars": _day_bars(report),
        "long": len(report.days) * (WIDE + GAP) - GAP,
        "tall": TALL,
        "wide": WIDE,
        "days_csv": f"{reverse('usage-csv')}?{report.wanted.query(by=DAY)}",
    }


def _day_bars(report: UsageReport) -> list[DayBar]:
    most = max((line.amount.total for line in report.days), default=0.0) or 1.0
    return [DayBar(line, place * (WIDE + GAP), _segments(line, TALL / most)) for place, line in enumerate(report.days)]


def _segments(line: UsageLine, scale: float) -> list[DayPart]:
    found, top = [], float(TALL)
    for use, hours in line.amount.hours.items():
        height = hours * scale
        if height > 0:
            top -= height
            words = f"{line.name}: {TITLES[use][0].lower()} {hours:,.1f} of {line.amount.total:,.1f} GPU-hours"
            found.append(DayPart(use, top, height, words))
    return found


def cells_of(line: UsageLine) -> list[tuple[str, float]]:
    return [(TITLES[use][0], hours) for use, hours in line.amount.hours.items()]
