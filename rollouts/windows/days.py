"""The days that a rule names, period by period, as RFC 5545 has it: a day is looked at once, however odd the rule."""

from calendar import isleap, monthrange
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from functools import lru_cache
from itertools import count, islice

from rollouts.windows.rules import Frequency, RecurrenceRule, read_rule

DAY = timedelta(days=1)


@lru_cache(maxsize=256)
def openings_of(text: str, starts_at: datetime, before_year: int) -> tuple[datetime, ...]:
    """Every start before that year, as the clock on the wall shows it. Reckoned once a process and year."""
    rule = read_rule(text)
    found = (datetime.combine(day, starts_at.time()) for day in _days(rule, starts_at.date(), before_year))
    starts = (each for each in found if rule.until is None or each <= rule.until)
    return tuple(islice(starts, rule.count))


def _days(rule: RecurrenceRule, first: date, before_year: int) -> Iterator[date]:
    for period in PERIODS[rule.frequency](rule, first, before_year):
        days = [day for day in period if _is_named(rule, first, day)]
        for day in _at_positions(days, rule.by_position):
            if day >= first:
                yield day


def _at_positions(days: Sequence[date], positions: Sequence[int]) -> Sequence[date]:
    if not positions:
        return days
    chosen = {place - 1 if place > 0 else len(days) + place for place in positions}
    return [day for place, day in enumerate(days) if place in chosen]


def _is_named(rule: RecurrenceRule, first: date, day: date) -> bool:
    if rule.by_month and day.month not in rule.by_month:
        return False
    if rule.by_month_day and not {day.day, day.day - _days_in(day) - 1} & set(rule.by_month_day):
        return False
    if rule.by_day:
        return any(_is_day(rule, day, weekday, number) for weekday, number in rule.by_day)
    return bool(rule.by_month_day) or _is_like_the_first(rule, first, day)


def _is_like_the_first(rule: RecurrenceRule, first: date, day: date) -> bool:
    """What a rule does not say, its start says."""
    if rule.frequency is Frequency.WEEKLY:
        return day.weekday() == first.weekday()
    if rule.frequency is Frequency.MONTHLY:
        return day.day == first.day
    if rule.frequency is Frequency.YEARLY:
        return day.day == first.day and (bool(rule.by_month) or day.month == first.month)
    return True


def _is_day(rule: RecurrenceRule, day: date, weekday: int, number: int | None) -> bool:
    """`number`: which one of the month; of the year, where the rule is yearly and names no month."""
    if day.weekday() != weekday:
        return False
    if number is None:
        return True
    is_of_year = rule.frequency is Frequency.YEARLY and not rule.by_month
    place, length = (day.timetuple().tm_yday, 365 + isleap(day.year)) if is_of_year else (day.day, _days_in(day))
    return number == (place - 1) // 7 + 1 if number > 0 else -number == (length - place) // 7 + 1


def _days_in(day: date) -> int:
    return monthrange(day.year, day.month)[1]


def _daily(rule: RecurrenceRule, first: date, before_year: int) -> Iterator[Sequence[date]]:
    for number in count():
        day = first + number * rule.interval * DAY
        if day.year >= before_year:
            return
        yield (day,)


def _weekly(rule: RecurrenceRule, first: date, before_year: int) -> Iterator[Sequence[date]]:
    monday = first - (first.weekday() - rule.week_start) % 7 * DAY
    for number in count():
        start = monday + number * rule.interval * 7 * DAY
        if start.year >= before_year:
            return
        yield [day for place in range(7) if (day := start + place * DAY).year < before_year]


def _monthly(rule: RecurrenceRule, first: date, before_year: int) -> Iterator[Sequence[date]]:
    for number in count():
        years, month = divmod(first.month - 1 + number * rule.interval, 12)
        if first.year + years >= before_year:
            return
        start = date(first.year + years, month + 1, 1)
        yield [start + place * DAY for place in range(_days_in(start))]


def _yearly(rule: RecurrenceRule, first: date, before_year: int) -> Iterator[Sequence[date]]:
    for year in range(first.year, before_year, rule.interval):
        yield [date(year, 1, 1) + place * DAY for place in range(365 + isleap(year))]


PERIODS: Mapping[Frequency, Callable[[RecurrenceRule, date, int], Iterator[Sequence[date]]]] = {
    Frequency.DAILY: _daily,
    Frequency.WEEKLY: _weekly,
    Frequency.MONTHLY: _monthly,
    Frequency.YEARLY: _yearly,
}
