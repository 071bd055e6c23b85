"""What an object's policy says of how many nodes go at once, whatever somebody wrote there."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu.upgrade_controller import parallel_of, unavailable_of

ANYTHING = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=6), st.lists(st.integers(), max_size=2),
    st.integers().map("{}%".format), st.sampled_from(["0%", "200%", "9" * 400 + "%", "9" * 5000]),
)  # fmt: skip


@pytest.mark.parametrize(
    ("said", "at_once"),
    [(4, 4), (0, 0), (None, 1), (-3, 1), ("2", 1), ("", 1), (True, 1), (2.5, 1), ([2], 1), ({}, 1)],
)
def test_what_is_no_number_of_nodes_at_once_is_what_is_not_said(said, at_once):
    assert parallel_of({"maxParallelUpgrades": said}) == at_once
    assert parallel_of({}) == 1


@pytest.mark.parametrize(("said", "nodes"), [(-5, 0), ("-5%", 0), ("200%", 16), (True, 0), (0.5, 0), ([2], 0), ({}, 0)])
def test_what_is_no_share_of_the_nodes_is_none_of_them(said, nodes):
    assert unavailable_of({"maxUnavailable": said}, 8) == nodes


@given(said=ANYTHING, nodes=st.integers(0, 10_000))
def test_anything_is_a_number_of_nodes(said, nodes):
    assert parallel_of({"maxParallelUpgrades": said}) >= 0
    allowed = unavailable_of({"maxUnavailable": said}, nodes)
    assert allowed is None or allowed >= 0
