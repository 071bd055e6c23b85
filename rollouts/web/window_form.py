"""A maintenance window as its form spells it, and what can be read of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta

from edges.digits import whole
from edges.requests import PersonRequest
from rollouts.models import MaintenanceWindow
from rollouts.steering.freezing import Where
from rollouts.windows.rules import LONGEST
from rollouts.windows.schedule import LONGEST_ZONE


@dataclass
class WindowForm:
    """As it was written, so that what cannot be read can be shown again."""

    on: str = ""  # cluster-3, pool-7
    rule: str = "FREQ=WEEKLY;BYDAY=SA,SU"
    first_day: str = ""
    opens_at: str = "02:00"
    zone: str = "UTC"
    hours: str = "4"
    minutes: str = "0"
    because: str = ""
    problems: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, request: PersonRequest) -> WindowForm:
        asked = request.POST

        def text(name: str, most: int) -> str:
            return asked.get(name, "").strip()[:most]

        return cls(
            on=text("on", 40),
            rule=text("rule", LONGEST + 1),  # one more: what is too long is said, and not cut
            first_day=text("first_day", 16),
            opens_at=text("opens_at", 16),
            zone=text("zone", LONGEST_ZONE),
            hours=text("hours", 8),
            minutes=text("minutes", 8),
            because=text("because", 1000),
        )

    @property
    def look(self) -> str:
        """What its preview was of."""
        return "|".join((self.on, self.rule, self.first_day, self.opens_at, self.zone, self.hours, self.minutes))

    def window(self, where: Where, *, by: str, now: datetime) -> MaintenanceWindow | None:
        """None: something cannot be read, and its field says so."""
        first_day, opens_at = self._first_day(now=now), self._opens_at()
        hours, minutes = whole(self.hours or "0"), whole(self.minutes or "0")
        if hours is None or minutes is None or hours > 1000 or minutes > 100_000:
            self.problems["duration_s"] = "Hours and minutes are whole numbers."
        if self.problems or first_day is None or opens_at is None or where.cluster is None:
            return None
        return MaintenanceWindow(
            cluster=where.cluster, pool=where.pool, rule=self.rule, first_day=first_day, opens_at=opens_at,
            zone=self.zone, duration_s=((hours or 0) * 60 + (minutes or 0)) * 60, because=self.because, by=by, at=now,
        )  # fmt: skip

    def _first_day(self, *, now: datetime) -> date | None:
        if not self.first_day:
            return now.date() - timedelta(days=1)  # wherever on the earth it is today
        try:
            return date.fromisoformat(self.first_day)
        except ValueError:
            self.problems["first_day"] = "This is no day: 2026-11-30."
            return None

    def _opens_at(self) -> time | None:
        try:
            return time.fromisoformat(self.opens_at).replace(second=0, microsecond=0, tzinfo=None)
        except ValueError:
            self.problems["opens_at"] = "This is no time of day: 02:00."
            return None
