"""Which days a recurrence rule (RFC 5545, RRULE) names, read by a small and bounded part of its grammar.

The time of day is the window's own: a rule that could open it more than once a day is refused. So is every part that
is not named here, as BYWEEKNO and BYEASTER: what nobody writes for a window must not be guessed.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from enum import StrEnum
from typing import Any

LONGEST = 200  # characters
DAYS = {"MO": 0, "TU": 1, "WE": 2, "TH": 3, "FR": 4, "SA": 5, "SU": 6}
NUMBER = re.compile(r"[+-]?\d{1,3}", re.ASCII)
DAY = re.compile(r"([+-]?\d{1,2})?(MO|TU|WE|TH|FR|SA|SU)", re.ASCII)
UNTIL = re.compile(r"(\d{8})(T\d{6})?", re.ASCII)


class BadWindow(Exception):
    """What was written down makes no window. `field` names where."""

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(sentence)
        self.field = field


class Frequency(StrEnum):
    DAILY = "DAILY"
    WEEKLY = "WEEKLY"
    MONTHLY = "MONTHLY"
    YEARLY = "YEARLY"


@dataclass(frozen=True)
class RecurrenceRule:
    frequency: Frequency
    interval: int = 1
    count: int | None = None
    until: datetime | None = None
    by_day: tuple[tuple[int, int | None], ...] = ()  # weekday from 0, Monday; and which one of them, from 1 or from -1
    by_month_day: tuple[int, ...] = ()
    by_month: tuple[int, ...] = ()
    by_position: tuple[int, ...] = ()
    week_start: int = 0


def read_rule(text: str) -> RecurrenceRule:
    """Linear in the text, which has an end.

    :raises BadWindow: with what is wrong
    """
    if len(text) > LONGEST:
        raise _bad(f"At most {LONGEST} characters.")
    parts: dict[str, str] = {}
    for part in text.strip().removeprefix("RRULE:").strip(";").upper().split(";"):
        name, equals, value = part.partition("=")
        if not equals or not value:
            raise _bad(f"“{part[:40]}” is no part of a rule: write FREQ=WEEKLY;BYDAY=SA.")
        if name in parts:
            raise _bad(f"{name[:20]} stands there twice.")
        if name not in READ:
            raise _bad(_unknown(name))
        parts[name] = value
    if "FREQ" not in parts:
        raise _bad("It needs a FREQ: DAILY, WEEKLY, MONTHLY or YEARLY.")
    if "COUNT" in parts and "UNTIL" in parts:
        raise _bad("COUNT and UNTIL exclude each other.")
    found: dict[str, Any] = {}
    for name, value in parts.items():
        key, read = READ[name]
        found[key] = read(name, value)
    rule = RecurrenceRule(**found)
    _refuse_what_has_no_sense(rule)
    return rule


def _unknown(name: str) -> str:
    if name in {"BYHOUR", "BYMINUTE", "BYSECOND"}:
        return f"{name} is not read here: a window opens at its own time of day. Make a window for each time."
    return f"{name[:20]} is not read here. There are: {', '.join(READ)}."


def _bad(sentence: str) -> BadWindow:
    return BadWindow("rule", sentence)


def _frequency(_: str, value: str) -> Frequency:
    if value in {"HOURLY", "MINUTELY", "SECONDLY"}:
        raise _bad(f"FREQ={value} is no window: at most one opening a day. Write FREQ=DAILY, and how long it is open.")
    if value not in Frequency.__members__:
        raise _bad("FREQ is DAILY, WEEKLY, MONTHLY or YEARLY.")
    return Frequency(value)


def _one(least: int, most: int) -> Callable[[str, str], int]:
    def read(name: str, value: str) -> int:
        if not (NUMBER.fullmatch(value) and value[0] not in "+-" and least <= int(value) <= most):
            raise _bad(f"{name} is a whole number from {least} to {most}.")
        return int(value)

    return read


def _several(most: int, *, signed: bool) -> Callable[[str, str], tuple[int, ...]]:
    def read(name: str, value: str) -> tuple[int, ...]:
        words = value.split(",")
        numbers = [int(word) for word in words if NUMBER.fullmatch(word)]
        if len(numbers) != len(words) or not all(1 <= abs(each) <= most for each in numbers):
            also = f", or from -{most} to -1 to count from the end" if signed else ""
            raise _bad(f"{name} lists whole numbers from 1 to {most}{also}.")
        if not signed and min(numbers) < 0:
            raise _bad(f"{name} lists whole numbers from 1 to {most}.")
        return tuple(numbers)

    return read


def _days(name: str, value: str) -> tuple[tuple[int, int | None], ...]:
    found = [DAY.fullmatch(word) for word in value.split(",")]
    days = [(each[2], int(each[1]) if each[1] else None) for each in found if each]
    if len(days) != len(found) or any(number is not None and not 1 <= abs(number) <= 53 for _, number in days):
        raise _bad(f"{name} lists days: MO, TU, WE, TH, FR, SA, SU; 2TU is the second Tuesday, -1FR the last Friday.")
    return tuple((DAYS[day], number) for day, number in days)


def _week_start(_: str, value: str) -> int:
    if value not in DAYS:
        raise _bad("WKST is the day on which a week begins: MO, TU, WE, TH, FR, SA or SU.")
    return DAYS[value]


def _until(_: str, value: str) -> datetime:
    """On the wall's clock, as the start is: to the end of a day without a time."""
    found = UNTIL.fullmatch(value)
    try:
        if found and found[2]:
            return datetime.strptime(f"{found[1]}{found[2]}", "%Y%m%dT%H%M%S")  # noqa: DTZ007
        if found:
            day = date(int(value[:4]), int(value[4:6]), int(value[6:]))
            return datetime.combine(day, time.max)
    except ValueError:
        pass  # the sentence below says it
    raise _bad("UNTIL is a day, as 20271231, or a day and a time of the window's own zone, as 20271231T220000.")


def _refuse_what_has_no_sense(rule: RecurrenceRule) -> None:
    """The third Tuesday of what? Only months and years have one; and a week has no days of the month."""
    of_weeks = (Frequency.DAILY, Frequency.WEEKLY)
    if any(number for _, number in rule.by_day) and rule.frequency in of_weeks:
        raise _bad("A number before a day, as 2TU, goes with FREQ=MONTHLY or FREQ=YEARLY.")
    if rule.by_month_day and rule.frequency is Frequency.WEEKLY:
        raise _bad("BYMONTHDAY goes with any FREQ but WEEKLY.")


READ: Mapping[str, tuple[str, Callable[[str, str], Any]]] = {
    "FREQ": ("frequency", _frequency),
    "INTERVAL": ("interval", _one(1, 366)),
    "COUNT": ("count", _one(1, 999)),
    "UNTIL": ("until", _until),
    "BYDAY": ("by_day", _days),
    "BYMONTHDAY": ("by_month_day", _several(31, signed=True)),
    "BYMONTH": ("by_month", _several(12, signed=False)),
    "BYSETPOS": ("by_position", _several(366, signed=True)),
    "WKST": ("week_start", _week_start),
}
