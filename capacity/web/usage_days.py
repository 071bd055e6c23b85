"""GPU-hours by use, a stacked bar for each day, for the pages that draw them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.urls import reverse

from capacity.usage.usage_filter import DAY
from capacity.usage.usage_lines import PART_TITLES, TITLES, UsageAmount, UsageLine, UsePart
from capacity.usage.usage_report import UsageReport
from health.telemetry.usage import GpuUse

TALL, WIDE, GAP = 140, 20, 4  # pixels of the picture and of a day's bar
PARTS_IN_TABLES = (UsePart.UNDER_USED, UsePart.STRANDED)
UseCell = tuple[str, float | None]


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
    cells: "list[UseCell]"


def shown_uses(report: UsageReport) -> list[GpuUse]:
    """Returns the uses that a page shows, without uses that only older hours have."""
    return [use for use, hours in report.total.hours.items() if hours or use is not GpuUse.OUT_OF_SERVICE]


def days_context(report: UsageReport) -> dict[str, Any]:
    """Returns what `capacity/usage/_days.html` shows."""
    total, uses = report.total, shown_uses(report)
    return {
        "report": report,
        "uses": [(use, *TITLES[use], total.hours[use], total.cost_text_of(use)) for use in uses],
        "part_heads": [PART_TITLES[part] for part in PARTS_IN_TABLES],
        "parts": [
            (part, *PART_TITLES[part], known_part(total, part), total.cost_text_of(part))
            for part, hours in total.parts.items()
            if hours or part is not UsePart.NOT_SPLIT
        ],
        "bars": _day_bars(report),
        "columns": len(uses) + len(PARTS_IN_TABLES) + 2,  # with the hours and the cost
        "long": len(report.days) * (WIDE + GAP) - GAP,
        "tall": TALL,
        "wide": WIDE,
        "days_csv": f"{reverse('usage-csv')}?{report.wanted.query(by=DAY)}",
    }


def _day_bars(report: UsageReport) -> list[DayBar]:
    most = max((line.amount.total for line in report.days), default=0.0) or 1.0
    uses, scale = shown_uses(report), TALL / most
    return [
        DayBar(line, place * (WIDE + GAP), _segments(line, scale), cells_of(line.amount, uses))
        for place, line in enumerate(report.days)
    ]


def _segments(line: UsageLine, scale: float) -> list[DayPart]:
    found, top = [], float(TALL)
    for use, hours in line.amount.hours.items():
        height = hours * scale
        if height > 0:
            top -= height
            words = f"{line.name}: {TITLES[use][0].lower()} {hours:,.1f} of {line.amount.total:,.1f} GPU-hours"
            found.append(DayPart(use, top, height, words))
    return found


def cells_of(amount: UsageAmount, uses: Iterable[GpuUse]) -> list[UseCell]:
    """Returns title and hours of each use and part; None: they are not known."""
    parts = ((PART_TITLES[part][0], known_part(amount, part)) for part in PARTS_IN_TABLES)
    return [*((TITLES[use][0], amount.hours[use]) for use in uses), *parts]


def known_part(amount: UsageAmount, part: UsePart) -> float | None:
    """Returns the hours of a part. None: they are not known of any hour."""
    if part is UsePart.UNDER_USED:
        is_known = amount.is_rated or not amount.hours[GpuUse.USED]
    else:
        is_known = (
            part is UsePart.NOT_SPLIT
            or amount.parts[UsePart.NOT_SPLIT] < amount.hours[GpuUse.UNALLOCATED]
            or (not amount.hours[GpuUse.UNALLOCATED])
        )
    return amount.parts[part] if is_known else None
