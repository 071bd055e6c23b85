from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from rollouts.commands.hold_progress import LATELY, holding_of, releasing_of
from tests.make import NOON

SECOND = timedelta(seconds=1)


def placed(number: int, *, over: timedelta) -> list:
    return [NOON - over * (number - each) / number for each in range(number)]


def test_the_rest_takes_as_long_as_the_pace_says():
    found = holding_of([*placed(60, over=30 * SECOND), *[None] * 120], now=NOON)

    assert found.sentence == "60 of 180 nodes held; about 1 min remaining at the pace of the last minute"


def test_what_was_held_long_ago_says_nothing_of_the_pace():
    old = [NOON - timedelta(hours=1)] * 500

    found = holding_of([*old, *placed(10, over=10 * SECOND), *[None] * 10], now=NOON)

    assert (found.done, found.total, found.left) == (510, 520, 10 * SECOND)


def test_a_few_labels_are_no_pace():
    found = holding_of([NOON - SECOND, None, None], now=NOON)

    assert (found.left, found.left_s) == (None, None)
    assert found.sentence == "1 of 3 nodes held"


def test_there_is_nothing_to_say_when_all_are_held_or_none_is_to_be():
    assert holding_of([], now=NOON) is None
    assert holding_of([NOON], now=NOON) is None


def test_letting_go_is_said_in_its_own_words():
    found = releasing_of([*placed(60, over=30 * SECOND), None], now=NOON)

    assert found.sentence == "60 of 61 nodes let go; about 1 s remaining at the pace of the last minute"


@given(ages=st.lists(st.none() | st.floats(-5, 200), max_size=40))
def test_it_counts_every_node_once_and_never_promises_no_time(ages):
    times = [None if age is None else NOON - timedelta(seconds=age) for age in ages]

    found = holding_of(times, now=NOON)

    assert (found is None) == (None not in times)
    if found:
        assert found.total - found.done == times.count(None)
        assert found.left is None or SECOND <= found.left <= LATELY * len(times)
