"""The days of a rule, held against python-dateutil, which follows the RFC and has no end where a rule names no day."""

import time
from datetime import datetime
from itertools import islice

import pytest
from dateutil.rrule import rrulestr
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rollouts.windows.rules import BadWindow, openings_of

END = 2029
NAMES = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"]
NEVER = [
    "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30",
    "FREQ=DAILY;BYSETPOS=2",
    "FREQ=WEEKLY;BYDAY=SA;BYSETPOS=3",
    "FREQ=MONTHLY;BYDAY=6MO",
    "FREQ=MONTHLY;BYDAY=53MO,-53SU",
    "FREQ=MONTHLY;BYDAY=TU,53MO;BYSETPOS=60",
    "FREQ=YEARLY;BYMONTH=12;BYDAY=53MO",
    "FREQ=YEARLY;BYMONTH=4;BYMONTHDAY=31",
]


def lists(values: st.SearchStrategy) -> st.SearchStrategy[str]:
    return st.lists(values, min_size=1, max_size=3, unique=True).map(lambda found: ",".join(map(str, found)))


def numbered(most: int) -> st.SearchStrategy[str]:
    """Days with numbers or without: of both in one rule the RFC means either, and dateutil those that are both."""
    days = st.tuples(st.sampled_from([*range(1, most), *range(-most + 1, 0)]), st.sampled_from(NAMES))
    return st.one_of(lists(st.sampled_from(NAMES)), lists(days.map(lambda day: f"{day[0]}{day[1]}")))


PARTS = {
    "INTERVAL": st.integers(1, 5),
    "BYMONTH": lists(st.integers(1, 12)),
    "BYMONTHDAY": lists(st.one_of(st.integers(1, 31), st.integers(-31, -1))),
    "WKST": st.sampled_from(NAMES),
}
OF = {"DAILY": lists(st.sampled_from(NAMES)), "WEEKLY": lists(st.sampled_from(NAMES)), "MONTHLY": numbered(5)}


@st.composite
def rules(draw: st.DrawFn) -> str:
    freq = draw(st.sampled_from(["DAILY", "WEEKLY", "MONTHLY", "YEARLY"]))
    parts = {**PARTS, "BYDAY": OF.get(freq, numbered(53))}
    chosen = draw(st.lists(st.sampled_from(sorted(parts)), max_size=3, unique=True))
    if chosen and freq != "DAILY" and draw(st.booleans()):
        parts["BYSETPOS"] = lists(st.one_of(st.integers(1, 3), st.integers(-2, -1)))
        chosen.append("BYSETPOS")
    return ";".join([f"FREQ={freq}", *(f"{name}={draw(parts[name])}" for name in chosen)])


@settings(max_examples=60, deadline=None)
@given(rules(), st.datetimes(datetime(2025, 1, 1), datetime(2028, 2, 29)).map(lambda at: at.replace(microsecond=0)))
@example("FREQ=YEARLY;BYDAY=-53SU", datetime(2025, 1, 1))
@example("FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU", datetime(2025, 5, 1))
@example("FREQ=WEEKLY;INTERVAL=2;WKST=SU;BYDAY=SU,MO", datetime(2025, 1, 1))
def test_they_are_those_of_the_rfc(rule: str, start: datetime):
    try:
        found = openings_of(rule, start, END)
    except BadWindow:
        return
    assert list(found) == list(islice(rrulestr(rule, dtstart=start), len(found)))


def test_days_with_and_without_a_number_are_either():
    """RFC 5545, 3.3.10: a day without a number is all of its kind within the month."""
    found = openings_of("FREQ=MONTHLY;BYDAY=TU,1MO", datetime(2025, 1, 1), END)

    assert [each.day for each in found[:5]] == [6, 7, 14, 21, 28]


@pytest.mark.parametrize("rule", NEVER)
def test_a_rule_that_names_no_day_is_through_in_no_time(rule: str):
    began = time.thread_time()

    assert openings_of(rule, datetime(2000, 1, 1), 2032) == ()
    assert time.thread_time() - began < 1
