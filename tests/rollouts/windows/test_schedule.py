"""When windows are open: exactly in their intervals, also in the weeks in which the clocks change."""

from datetime import UTC, date, datetime, time, timedelta
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollouts.windows import BadWindow, Interval, Schedule, common, first_day, union

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)  # a Friday
HOURS = timedelta(hours=1)
BERLIN = "Europe/Berlin"


def a_schedule(rule: str = "FREQ=WEEKLY;BYDAY=SA", **given) -> Schedule:
    """Saturdays from 2 to 6, in Berlin."""
    row = {"starts_at": datetime(2026, 1, 3, 2, 0), "zone": BERLIN, "duration": 4 * HOURS}
    return Schedule(rule, **row | given)


def at(day: int, hour: float, *, month: int = 11, year: int = 2026) -> datetime:
    return datetime(year, month, day, tzinfo=UTC) + hour * HOURS


def is_open(schedules: list[Schedule], when: datetime) -> bool:
    first = next(union(schedules, after=when), None)
    return first is not None and first.opens_at <= when


def test_it_is_open_from_its_first_instant_until_just_before_its_last():
    schedule, tick = [a_schedule()], timedelta(microseconds=1)

    assert not is_open(schedule, at(21, 1) - tick)
    assert is_open(schedule, at(21, 1))
    assert is_open(schedule, at(21, 5) - tick)
    assert not is_open(schedule, at(21, 5))


def test_it_keeps_its_time_of_day_when_the_clocks_change():
    """In Berlin the clocks went back on 25 October 2026: from UTC+2 to UTC+1."""
    opened = list(islice(a_schedule("FREQ=WEEKLY;BYDAY=SA").intervals(after=at(20, 0, month=10)), 2))

    assert [each.opens_at for each in opened] == [at(24, 0, month=10), at(31, 1, month=10)]


def test_a_time_that_the_clocks_leave_out_is_an_hour_later_on_the_wall():
    """On 28 March 2027 there is no 2:30 in Berlin: after 1:59:59 it is 3:00."""
    schedule = a_schedule("FREQ=DAILY", starts_at=datetime(2026, 1, 3, 2, 30), duration=HOURS)

    (opened,) = islice(schedule.intervals(after=at(28, 0.5, month=3, year=2027)), 1)

    assert opened == Interval(at(28, 1.5, month=3, year=2027), at(28, 2.5, month=3, year=2027))
    assert opened.opens_at.astimezone(ZoneInfo(BERLIN)).strftime("%H:%M") == "03:30"


def test_of_a_time_that_comes_twice_it_is_the_first_and_once():
    """On 25 October 2026 2:30 comes twice in Berlin."""
    schedule = a_schedule("FREQ=DAILY", starts_at=datetime(2026, 1, 3, 2, 30), duration=HOURS)

    first, second = islice(schedule.intervals(after=at(25, 0, month=10)), 2)

    assert first.opens_at == at(25, 0.5, month=10)
    assert second.opens_at == at(26, 1.5, month=10)


def test_it_is_as_long_as_ever_in_a_night_that_has_an_hour_less():
    schedule = a_schedule("FREQ=DAILY", starts_at=datetime(2026, 1, 3, 1, 0), duration=4 * HOURS)

    (opened,) = islice(schedule.intervals(after=at(28, 0.5, month=3, year=2027)), 1)

    assert opened.closes_at - opened.opens_at == 4 * HOURS


def test_windows_that_touch_are_one():
    by_day = [a_schedule("FREQ=DAILY", duration=24 * HOURS, zone="UTC")]

    (opened,) = islice(union(by_day, after=NOW), 1)

    assert opened.closes_at > NOW + timedelta(days=4 * 365)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"zone": "Europe/Atlantis"}, "zone"),
        ({"zone": "../../etc/passwd"}, "zone"),
        ({"zone": "E" * 1000}, "zone"),
        ({"zone": ""}, "zone"),
        ({"duration": timedelta(minutes=4)}, "duration"),
        ({"duration": timedelta(days=8)}, "duration"),
        ({"starts_at": datetime(1999, 1, 1)}, "starts_at"),
        ({"starts_at": datetime(9999, 1, 1)}, "starts_at"),
        ({"rule": "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30"}, "rule"),
        ({"rule": "FREQ=DAILY;UNTIL=20261101"}, "rule"),
        ({"rule": "FREQ=DAILY;COUNT=1"}, "rule"),
        ({"starts_at": datetime(2040, 1, 1)}, "rule"),
        ({"rule": "FREQ=MINUTELY"}, "rule"),
    ],
)
def test_what_makes_no_window_is_refused_with_its_field(given, field):
    with pytest.raises(BadWindow) as refusal:
        a_schedule(**given).refuse_nonsense(now=NOW)

    assert refusal.value.field == field


@pytest.mark.parametrize(
    ("opens_at", "zone", "hours", "day"),
    [
        (time(14), "UTC", 1, 20),  # later today
        (time(2), "UTC", 1, 21),  # over for today
        (time(11), "UTC", 2, 20),  # open now
        (time(11), "UTC", 1, 21),  # closes now
        (time(22), "UTC", 15, 19),  # open since yesterday, over midnight
        (time(2), "UTC", 7 * 24, 14),  # open for a week
        (time(0, 30), "Pacific/Kiritimati", 1, 22),  # where it is 2 o'clock of the 21st: over
        (time(0, 30), "Pacific/Kiritimati", 2, 21),  # and here open
        (time(23), "Pacific/Pago_Pago", 1, 20),  # where it is 1 o'clock of the 20th
        (time(23), "Pacific/Pago_Pago", 3, 19),  # and here open since the 19th
    ],
)
def test_from_now_on_is_from_the_first_day_whose_opening_is_not_over(opens_at, zone, hours, day):
    assert first_day(opens_at, zone, hours * HOURS, now=NOW) == date(2026, 11, day)


def test_those_of_two_places_are_open_together_only_where_both_are():
    cluster, pool = [a_schedule()], [a_schedule(starts_at=datetime(2026, 1, 3, 4, 0))]

    (both,) = islice(common([cluster, pool], after=NOW), 1)

    assert both == Interval(at(21, 3), at(21, 5))


def test_two_that_never_meet_have_nothing_in_common():
    sundays = [a_schedule("FREQ=WEEKLY;BYDAY=SU")]

    assert list(common([[a_schedule()], sundays], after=NOW)) == []


# What holds of every window

RULES = st.builds(
    lambda freq, interval, tail: f"FREQ={freq};INTERVAL={interval};UNTIL=20281231{tail}",
    st.sampled_from(["DAILY", "WEEKLY", "MONTHLY"]),
    st.integers(1, 4),
    st.sampled_from(["", ";BYDAY=SA", ";BYDAY=MO,WE", ";BYMONTH=3,10"]),
)
SCHEDULES = st.builds(
    Schedule,
    RULES,
    st.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1)).map(lambda when: when.replace(microsecond=0)),
    st.sampled_from(["UTC", BERLIN, "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Africa/Casablanca"]),
    st.timedeltas(timedelta(minutes=5), timedelta(days=7)),
)
INSTANTS = st.one_of(
    st.datetimes(datetime(2026, 1, 1), datetime(2028, 6, 1), timezones=st.just(UTC)),
    st.sampled_from([at(25, 0.5, month=10), at(28, 1, month=3, year=2027), at(1, 6), at(14, 7, month=3, year=2027)]),
)


A_FEW = settings(max_examples=30, deadline=None)


@A_FEW
@given(st.lists(SCHEDULES, min_size=1, max_size=3), INSTANTS)
def test_a_window_is_open_exactly_in_its_intervals(schedules, when):
    """By the definition itself: the wall's clock showed a start of the rule at most its duration ago."""
    from rollouts.windows.rules import openings_of

    starts = [
        (start.replace(tzinfo=ZoneInfo(one.zone)).astimezone(UTC), one.duration)
        for one in schedules
        for start in openings_of(one.rule, one.starts_at, 2035)
    ]

    assert is_open(schedules, when) == any(start <= when < start + duration for start, duration in starts)


@A_FEW
@given(st.lists(SCHEDULES, min_size=1, max_size=3), INSTANTS)
def test_the_next_opening_is_never_over_and_they_come_in_order(schedules, when):
    found = list(islice(union(schedules, after=when), 20))

    assert all(each.opens_at < each.closes_at for each in found)
    assert all(each.closes_at > when for each in found)
    assert all(one.closes_at < other.opens_at for one, other in pairwise(found))


@A_FEW
@given(st.lists(st.lists(SCHEDULES, min_size=1, max_size=2), min_size=1, max_size=3), INSTANTS)
def test_what_is_common_is_open_in_each(groups, when):
    for both in islice(common(groups, after=when), 3):
        inside = max(both.opens_at, when)
        assert all(is_open(group, inside) for group in groups)
        assert not all(is_open(group, both.closes_at) for group in groups)
