"""The bars, marks and rows of a strip, in fractions of its width."""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple


class StripBar(NamedTuple):
    begin: float  # from 0 to 1
    end: float
    kind: str  # ok, warn, bad, idle
    title: str

    @property
    def width(self) -> float:
        """Returns the width, with a short time still visible."""
        return max(0.006, self.end - self.begin)


class StripMark(NamedTuple):
    at: float  # from 0 to 1
    kind: str  # limit, change
    title: str


class StripRow(NamedTuple):
    name: str
    value: str
    bars: tuple[StripBar, ...] = ()
    marks: tuple[StripMark, ...] = ()


@dataclass(frozen=True)
class StripSpan:
    """The time from the left to the right end of a strip."""

    begin: datetime
    end: datetime

    def bar(self, begin: datetime, end: datetime, kind: str, title: str) -> StripBar:
        return StripBar(self._place(begin), self._place(end), kind, title)

    def mark(self, at: datetime, kind: str, title: str) -> StripMark:
        return StripMark(self._place(at), kind, title)

    def _place(self, at: datetime) -> float:
        length = max(1.0, (self.end - self.begin).total_seconds())
        return min(1.0, max(0.0, (at - self.begin).total_seconds() / length))
