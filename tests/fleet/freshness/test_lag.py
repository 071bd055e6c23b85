from datetime import timedelta

from fleet.freshness.lag import Lag, sentence
from tests.make import NOON


def after(*flushes: tuple[float, int]) -> Lag:
    """(seconds since noon, lag in ms) of each flush."""
    lag = Lag()
    for second, ms in flushes:
        lag = lag.after(ms, now=NOON + timedelta(seconds=second))
    return lag


def test_a_burst_that_is_late_once_is_not_behind():
    assert not after((0, 3000), (4, 2500), (5, 100)).is_behind


def test_who_stays_late_for_ten_seconds_is_behind_since_the_beginning():
    lag = after((0, 2500), (5, 4000), (10, 4000))

    assert lag.behind_since == NOON - timedelta(seconds=0.5)


def test_one_flush_that_was_stuck_is_enough():
    assert after((0, 15_000)).behind_since == NOON - timedelta(seconds=13)


def test_one_flush_in_time_is_enough_to_have_caught_up():
    lag = after((0, 15_000), (1, 1999))

    assert (lag.is_behind, lag.late_since, lag.ms) == (False, None, 1999)


def test_a_new_turn_goes_on_from_what_is_written():
    lag = Lag(behind_since=NOON).after(5000, now=NOON + timedelta(minutes=1))

    assert lag.behind_since == NOON


def test_says_how_late_and_since_when():
    assert sentence("north", lag_ms=100, behind_since=None) == ""
    assert sentence("north", lag_ms=12_340, behind_since=NOON) == (
        "Quarterdeck cannot keep up with north since 2026-11-21 12:00:00 UTC: changes are shown 12.3 s late. "
        "Its worker has too little CPU, or the database is slow."
    )
    assert "changes are shown late. Its worker" in sentence("north", behind_since=NOON)
