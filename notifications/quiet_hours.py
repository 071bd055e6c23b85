"""Quiet hours of a route: the days and times at which only urgent messages are sent. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
URGENT = "critical"
LONGEST = timedelta(days=8)


@dataclass(frozen=True)
class QuietHours:
    """Hours that begin on some days at `start`, and end at the next `end`, in a time zone."""

    zone: str  # of the IANA database
    start: time
    end: time  # the same as the start: 24 hours later
    days: Sequence[int]  # on which they begin; 0: Monday
    holds_criticals: bool = False

    def end_of(self, at: datetime) -> datetime | None:
        """Returns when the quiet hours at this instant end; None outside them. Hours that follow at once are one."""
        end = self._end_once(at)
        while end is not None and end < at + LONGEST and (further := self._end_once(end)):
            end = further
        return end

    def holds(self, severity: str) -> bool:
        return self.holds_criticals or severity != URGENT

    def _end_once(self, at: datetime) -> datetime | None:
        zone = ZoneInfo(self.zone)
        today = at.astimezone(zone).date()
        for day in (today - timedelta(days=1), today):
            last = day if self.start < self.end else day + timedelta(days=1)
            begins, ends = datetime.combine(day, self.start, zone), datetime.combine(last, self.end, zone)
            if day.weekday() in self.days and begins <= at < ends:
                return ends
        return None

    @property
    def sentence(self) -> str:
        days = "every day" if len(self.days) == len(DAYS) else ", ".join(DAYS[day][:3] for day in self.days)
        return f"quiet {self.start:%H:%M}–{self.end:%H:%M} {self.zone}, {days}"

    def written(self) -> dict[str, Any]:
        """Returns the row that is stored."""
        times = {"start": f"{self.start:%H:%M}", "end": f"{self.end:%H:%M}"}
        return {"zone": self.zone, **times, "days": list(self.days), "holds_criticals": self.holds_criticals}

    @classmethod
    def read(cls, row: Mapping[str, Any]) -> "QuietHours | None":
        """Returns stored quiet hours; None for an empty row.

        :raises ValueError: when a time is none
        """
        if not row:
            return None
        start, end = (time.fromisoformat(row[name]) for name in ("start", "end"))
        return cls(row["zone"], start, end, tuple(row["days"]), row["holds_criticals"])
