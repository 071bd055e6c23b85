"""Recurrence rules (RFC 5545, RRULE): a bounded part of the grammar, worked out by python-dateutil.

The time of day is the window's own: a rule that could open it more than once a day is refused. So is every part that
is not named here, as BYWEEKNO and BYEASTER: what nobody writes for a window must not be guessed.
"""

import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import islice, takewhile

from dateutil.rrule import rrulestr

LONGEST = 200  # characters
FREQUENCIES = ("DAILY", "WEEKLY", "MONTHLY", "YEARLY")
DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
NUMBER = re.compile(r"[+-]?\d{1,3}", re.ASCII)
DAY = re.compile(r"([+-]?\d{1,2})?(MO|TU|WE|TH|FR|SA|SU)", re.ASCII)
UNTIL = re.compile(r"\d{8}(T\d{6})?", re.ASCII)
# Calendars repeat every 400 years, and dateutil looks for a rule's days until the year 9999, also where there are none.
# As many years later it begins near that end, so a rule that never opens costs 400 years at most.
LATER = 7600


class BadWindow(Exception):
    """The input makes no window; `field` is the part that is wrong."""

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(sentence)
        self.field = field


@lru_cache(maxsize=256)
def openings_of(text: str, starts_at: datetime, before_year: int) -> tuple[datetime, ...]:
    """Returns every start before that year, as the clock on the wall shows it. Reckoned once a process and year.

    :raises BadWindow: as `read_rule`
    """
    parts = read_rule(text)
    until, most = _end_of_until(parts.pop("UNTIL", "")), int(parts.pop("COUNT", "0")) or None
    rule = rrulestr(
        ";".join(f"{name}={value}" for name, value in parts.items()),
        dtstart=starts_at.replace(year=starts_at.year + LATER),
    )
    found = (each.replace(year=each.year - LATER) for each in rule)
    return tuple(islice(takewhile(lambda each: each.year < before_year and (not until or each <= until), found), most))


def read_rule(text: str) -> dict[str, str]:
    """Returns the rule's parts, each as python-dateutil takes it. Linear in the text, which has an end.

    :raises BadWindow: with what is wrong
    """
    if len(text) > LONGEST:
        raise _bad(f"At most {LONGEST} characters.")
    parts: dict[str, str] = {}
    for part in text.strip().removeprefix("RRULE:").strip(";").upper().split(";"):
        name, equals, value = part.partition("=")
        if not equals or not value:
            raise _bad(f"“{part[:40]}” is not part of an RRULE. Write FREQ=WEEKLY;BYDAY=SA.")
        if name in parts:
            raise _bad(f"{name[:20]} is there twice.")
        if name in {"BYHOUR", "BYMINUTE", "BYSECOND"}:
            raise _bad(
                f"{name} is not allowed, because a window opens at its own time of day. Create a window for each time."
            )
        if name not in PARTS:
            raise _bad(f"{name[:20]} is not allowed. Allowed parts: {', '.join(PARTS)}.")
        if value in {"HOURLY", "MINUTELY", "SECONDLY"}:
            raise _bad(f"{part} is not allowed: a window opens at most once a day. Write FREQ=DAILY and the duration.")
        is_good, sentence = PARTS[name]
        if not is_good(value):
            raise _bad(f"{name} {sentence}")
        parts[name] = value
    _check_request(parts)
    if "BYDAY" in parts:
        is_of_year = parts["FREQ"] == "YEARLY" and "BYMONTH" not in parts
        parts["BYDAY"] = _numbered(parts["BYDAY"], most=53 if is_of_year else 5)
    return parts


def _bad(sentence: str) -> BadWindow:
    return BadWindow("rule", sentence)


def _check_request(parts: Mapping[str, str]) -> None:
    """The third Tuesday of what? Only months and years have one; and a week has no days of the month."""
    if "FREQ" not in parts:
        raise _bad("The rule needs a FREQ: DAILY, WEEKLY, MONTHLY or YEARLY.")
    if "COUNT" in parts and "UNTIL" in parts:
        raise _bad("COUNT and UNTIL exclude each other.")
    if re.search(r"\d", parts.get("BYDAY", "")) and parts["FREQ"] in {"DAILY", "WEEKLY"}:
        raise _bad("A number before a day, as in 2TU, needs FREQ=MONTHLY or FREQ=YEARLY.")
    if "BYMONTHDAY" in parts and parts["FREQ"] == "WEEKLY":
        raise _bad("BYMONTHDAY is not allowed with FREQ=WEEKLY.")


def _numbered(value: str, *, most: int) -> str:
    """Days with a number and without: the RFC (3.3.10) means either, dateutil those that are both.

    `most`: how many of a weekday there can be; dateutil fails on numbers far beyond that.
    """
    found = [word for word in map(DAY.fullmatch, value.split(",")) if word]
    if not any(day[1] for day in found):
        return value
    every = [f"{number}{day[2]}" for day in found if not day[1] for number in range(1, most + 1)]
    return ",".join([*(f"{max(-most - 1, min(int(day[1]), most + 1))}{day[2]}" for day in found if day[1]), *every])


def _end_of_until(value: str) -> datetime | None:
    """Returns the local time of UNTIL, the end of the day for a date; None if the rule has no end."""
    if not value:
        return None
    if "T" in value:
        return datetime.strptime(value, "%Y%m%dT%H%M%S")  # noqa: DTZ007
    return datetime.strptime(value, "%Y%m%d") + timedelta(days=1, microseconds=-1)  # noqa: DTZ007


def _is_until(value: str) -> bool:
    try:
        return UNTIL.fullmatch(value) is not None and _end_of_until(value) is not None
    except (ValueError, OverflowError):
        return False


def _is_number(most: int, *, signed: bool = False) -> Callable[[str], bool]:
    def is_good(word: str) -> bool:
        is_number = NUMBER.fullmatch(word) and (signed or word.isdecimal())
        return bool(is_number) and 1 <= abs(int(word)) <= most

    return is_good


def _are(is_good: Callable[[str], bool]) -> Callable[[str], bool]:
    return lambda value: all(is_good(word) for word in value.split(","))


def _is_day(word: str) -> bool:
    found = DAY.fullmatch(word)
    return found is not None and (not found[1] or 1 <= abs(int(found[1])) <= 53)


# Each part with its allowed values, and the sentence about them.
PARTS: Mapping[str, tuple[Callable[[str], bool], str]] = {
    "FREQ": (FREQUENCIES.__contains__, "is DAILY, WEEKLY, MONTHLY or YEARLY."),
    "INTERVAL": (_is_number(366), "is a whole number from 1 to 366."),
    "COUNT": (_is_number(999), "is a whole number from 1 to 999."),
    "UNTIL": (
        _is_until,
        "is a day, as 20271231, or a day and a time of the window's own zone, as 20271231T220000.",
    ),
    "BYDAY": (
        _are(_is_day),
        "lists days: MO, TU, WE, TH, FR, SA, SU; 2TU is the second Tuesday, -1FR the last Friday.",
    ),
    "BYMONTHDAY": (
        _are(_is_number(31, signed=True)),
        "lists whole numbers from 1 to 31, or from -31 to -1 to count from the end.",
    ),
    "BYMONTH": (_are(_is_number(12)), "lists whole numbers from 1 to 12."),
    "BYSETPOS": (
        _are(_is_number(366, signed=True)),
        "lists whole numbers from 1 to 366, or from -366 to -1 to count from the end.",
    ),
    "WKST": (DAYS.__contains__, "is the day on which a week begins: MO, TU, WE, TH, FR, SA or SU."),
}
