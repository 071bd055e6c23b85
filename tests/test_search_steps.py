"""The bound of the steps of a search."""

import pytest

from tests.search_steps import steps_of_search


@pytest.mark.parametrize(
    ("pattern", "alike"),
    [
        (r"mca\w*.{0,80}not available", r"mca.{0,100}not available"),
        (r"munge\S*.{0,80}fail", r"\bmunge\b.{0,80}fail"),
        (r"lib\S+\.so\S*: cannot", r"lib\S{1,60}\.so\S{0,20}: cannot"),
        (r"a.*b.*c", r"a.{0,80}b.{0,80}c"),
    ],
)
def test_an_open_repetition_is_dearer_than_a_bound_one(pattern, alike):
    assert steps_of_search(pattern, 4096) > 40_000_000 > steps_of_search(alike, 4096)


def test_a_repetition_that_stops_where_the_next_try_begins_is_cheap():
    assert steps_of_search(r"gpu\d+ lost", 4096) < 100_000
