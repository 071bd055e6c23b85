from datetime import UTC, datetime, time

import pytest

from notifications.quiet_hours import QuietHours

EVERY_DAY = tuple(range(7))
NIGHTS = QuietHours("Europe/Berlin", time(22), time(7), EVERY_DAY)
WEEKEND = QuietHours("Europe/Berlin", time(0), time(0), (5, 6))


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("hours", "at", "end"),
    [
        (NIGHTS, "2026-07-01T19:59", None),  # 21:59 in Berlin
        (NIGHTS, "2026-07-01T20:00", "2026-07-02T05:00"),
        (NIGHTS, "2026-07-02T01:00", "2026-07-02T05:00"),
        (NIGHTS, "2026-07-02T05:00", None),
        (NIGHTS, "2026-10-24T21:00", "2026-10-25T06:00"),  # the clock is put back that night
        (WEEKEND, "2026-07-04T10:00", "2026-07-05T22:00"),  # until Monday, not until Sunday
        (WEEKEND, "2026-07-06T10:00", None),
        (QuietHours("UTC", time(12), time(13), (0,)), "2026-07-06T12:30", "2026-07-06T13:00"),
        (QuietHours("UTC", time(12), time(13), (0,)), "2026-07-07T12:30", None),
    ],
)
def test_quiet_hours_end_at_the_wall_clock_of_their_zone(hours, at, end):
    assert hours.end_of(utc(at)) == (utc(end) if end else None)


def test_criticals_pass_unless_said_otherwise():
    assert [NIGHTS.holds(severity) for severity in ("critical", "warning", "note")] == [False, True, True]
    assert QuietHours("UTC", time(22), time(7), EVERY_DAY, holds_criticals=True).holds("critical")


def test_what_is_stored_is_read_back():
    assert QuietHours.read(NIGHTS.written()) == NIGHTS
    assert QuietHours.read({}) is None
