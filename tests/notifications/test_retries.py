from datetime import timedelta

from notifications.channels.base import GIVE_UP_AFTER
from notifications.retries import next_try, pause_after
from tests.make import NOON


def tries(*, is_pager: bool) -> list[float]:
    """When each try is, in seconds after the first."""
    at, found = NOON, [0.0]
    while (again := next_try(attempts=len(found), created_at=NOON, is_pager=is_pager, now=at)) is not None:
        at = again
        found.append((at - NOON).total_seconds())
    return found


def test_a_pager_is_tried_four_more_times_in_eight_minutes():
    assert tries(is_pager=True)[:5] == [0, 5, 35, 155, 455]


def test_others_follow_the_schedule_of_standard_webhooks():
    assert tries(is_pager=False)[:5] == [0, 5, 305, 2105, 9305]


def test_all_are_given_up_within_a_day():
    assert max(*tries(is_pager=True), *tries(is_pager=False)) <= GIVE_UP_AFTER.total_seconds()


def test_a_channel_rests_as_long_as_it_asks_for():
    assert pause_after(30.0) == timedelta(seconds=30)
    assert pause_after(None) == timedelta(seconds=5)
