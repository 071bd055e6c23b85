from datetime import UTC, datetime
from email.utils import format_datetime

import pytest

from kube.client.server_clock import ServerClock

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC).timestamp()


def dated(at: float) -> str:
    return format_datetime(datetime.fromtimestamp(int(at), UTC), usegmt=True)


@pytest.mark.parametrize("ahead_s", [-200.0, -7.0, 9.0, 185.0])
def test_tells_how_far_a_clock_is_off_to_a_second(ahead_s):
    clock = ServerClock()

    for tenth in range(10):
        at = NOON + tenth * 1.1
        clock.note(dated(at + 0.02 + ahead_s), sent_at=at, answered_at=at + 0.04)

    assert abs(clock.skew_s - ahead_s) < 0.6


def test_clocks_that_may_agree_are_said_to():
    clock = ServerClock()

    clock.note(dated(NOON + 0.9), sent_at=NOON + 0.8, answered_at=NOON + 1.1)

    assert clock.skew_s == 0.0


def test_a_clock_that_is_set_is_followed():
    clock = ServerClock()
    clock.note(dated(NOON + 300), sent_at=NOON, answered_at=NOON + 0.1)

    clock.note(dated(NOON + 10), sent_at=NOON + 10, answered_at=NOON + 10.1)

    assert clock.skew_s == 0.0


@pytest.mark.parametrize("date", [None, "", "yesterday", "Sat, 99 Nov 2026 12:00:00 GMT"])
def test_what_is_no_date_says_nothing(date):
    clock = ServerClock()

    clock.note(date, sent_at=NOON, answered_at=NOON + 0.1)

    assert clock.skew_s is None


def test_an_answer_that_took_long_says_nothing():
    clock = ServerClock()

    clock.note(dated(NOON), sent_at=NOON - 60, answered_at=NOON)

    assert clock.skew_s is None
