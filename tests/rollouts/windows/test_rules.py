"""What a recurrence rule may say, and that nothing else is read."""

from datetime import datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rollouts.windows.rules import LONGEST, PARTS, BadWindow, openings_of, read_rule

START = datetime(2026, 11, 21, 2, 0)  # a Saturday


def days(rule: str, number: int = 3) -> list[str]:
    return [f"{each:%a %Y-%m-%d %H:%M}" for each in openings_of(rule, START, 2032)[:number]]


@pytest.mark.parametrize(
    ("rule", "first"),
    [
        ("FREQ=DAILY", ["Sat 2026-11-21 02:00", "Sun 2026-11-22 02:00", "Mon 2026-11-23 02:00"]),
        ("FREQ=WEEKLY;BYDAY=SA,SU", ["Sat 2026-11-21 02:00", "Sun 2026-11-22 02:00", "Sat 2026-11-28 02:00"]),
        ("RRULE:FREQ=WEEKLY", ["Sat 2026-11-21 02:00", "Sat 2026-11-28 02:00"]),
        ("freq=weekly;interval=2;", ["Sat 2026-11-21 02:00", "Sat 2026-12-05 02:00"]),
        ("FREQ=MONTHLY;BYDAY=2TU", ["Tue 2026-12-08 02:00", "Tue 2027-01-12 02:00"]),
        ("FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1", ["Mon 2026-11-30 02:00", "Thu 2026-12-31 02:00"]),
        ("FREQ=MONTHLY;BYMONTHDAY=-1", ["Mon 2026-11-30 02:00", "Thu 2026-12-31 02:00"]),
        ("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29", ["Tue 2028-02-29 02:00"]),
        ("FREQ=DAILY;COUNT=2", ["Sat 2026-11-21 02:00", "Sun 2026-11-22 02:00"]),
        ("FREQ=DAILY;UNTIL=20261122", ["Sat 2026-11-21 02:00", "Sun 2026-11-22 02:00"]),
        ("FREQ=DAILY;UNTIL=20261122T015959", ["Sat 2026-11-21 02:00"]),
    ],
)
def test_it_names_the_days_that_the_rfc_says(rule: str, first: list[str]):
    assert days(rule, len(first)) == first


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ("", "” is not part of an RRULE"),
        ("WEEKLY", "” is not part of an RRULE"),
        ("BYDAY=SA", "needs a FREQ"),
        ("FREQ=SECONDLY", "is not allowed: a window opens at most once a day"),
        ("FREQ=HOURLY;COUNT=3", "is not allowed: a window opens at most once a day"),
        ("FREQ=OFTEN", "FREQ is DAILY"),
        ("FREQ=DAILY;BYHOUR=1,2,3", "own time of day"),
        ("FREQ=DAILY;BYSECOND=0", "own time of day"),
        ("FREQ=YEARLY;BYEASTER=0", "BYEASTER is not allowed"),
        ("FREQ=YEARLY;BYWEEKNO=20", "BYWEEKNO is not allowed"),
        ("FREQ=DAILY;FREQ=WEEKLY", "FREQ is there twice"),
        ("FREQ=DAILY;INTERVAL=0", "INTERVAL is a whole number from 1 to 366"),
        ("FREQ=DAILY;INTERVAL=-1", "INTERVAL is a whole number"),
        ("FREQ=DAILY;INTERVAL=99999999999999", "INTERVAL is a whole number"),
        ("FREQ=DAILY;COUNT=1000", "COUNT is a whole number from 1 to 999"),
        ("FREQ=DAILY;COUNT=1;UNTIL=20261231", "exclude each other"),
        ("FREQ=DAILY;UNTIL=20261331", "UNTIL is a day"),
        ("FREQ=DAILY;UNTIL=tomorrow", "UNTIL is a day"),
        ("FREQ=DAILY;UNTIL=20261231T220000Z", "of the window's own zone"),
        ("FREQ=WEEKLY;BYDAY=SAT", "BYDAY lists days"),
        ("FREQ=WEEKLY;BYDAY=2SA", "A number before a day, as in 2TU, needs FREQ=MONTHLY or FREQ=YEARLY"),
        ("FREQ=MONTHLY;BYDAY=0SA", "BYDAY lists days"),
        ("FREQ=WEEKLY;BYMONTHDAY=1", "BYMONTHDAY is not allowed with FREQ=WEEKLY"),
        ("FREQ=MONTHLY;BYDAY=54SA", "BYDAY lists days"),
        ("FREQ=MONTHLY;BYMONTHDAY=32", "BYMONTHDAY lists whole numbers from 1 to 31"),
        ("FREQ=MONTHLY;BYMONTHDAY=1,,2", "BYMONTHDAY lists whole numbers"),
        ("FREQ=YEARLY;BYMONTH=-1", "BYMONTH lists whole numbers from 1 to 12."),
        ("FREQ=WEEKLY;WKST=XX", "WKST is the day"),
        ("FREQ=DAILY;INTERVAL=１", "INTERVAL is a whole number"),
        ("FREQ=DAILY;" * 30, "At most 200 characters"),
    ],
)
def test_what_it_may_not_say_is_refused_with_what_to_write(rule: str, says: str):
    with pytest.raises(BadWindow, match=says) as refusal:
        read_rule(rule)

    assert refusal.value.field == "rule"


NAMES = st.sampled_from([*PARTS, "BYHOUR", "X", ""])
VALUES = st.text(alphabet="DAILYWEKMONTHYR0123456789+-,SAUFRT Z=;é\x00", max_size=12)


@given(st.lists(st.tuples(NAMES, VALUES), max_size=8))
@example([("FREQ", "DAILY"), ("BYMONTH", "2"), ("BYMONTHDAY", "30")])
@example([("FREQ", "DAILY"), ("UNTIL", "00000000")])
@example([("FREQ", "YEARLY"), ("BYDAY", "+1MO,-53SU"), ("BYSETPOS", "366")])
def test_whatever_is_written_is_read_or_refused(parts: list[tuple[str, str]]):
    rule = ";".join(f"{name}={value}" for name, value in [("FREQ", "WEEKLY"), *parts[1:]] if name)

    try:
        found = openings_of(rule, START, 2028)
    except BadWindow:
        return
    assert len(rule) <= LONGEST
    assert list(found) == sorted(set(found))
