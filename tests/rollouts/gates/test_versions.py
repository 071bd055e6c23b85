import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollouts.gates.versions import same_version


@pytest.mark.parametrize(("one", "other"), [("580.95.05", "580.95.5"), ("570.172.08", "570.172.08 ")])
def test_numbers_are_compared_as_numbers(one: str, other: str):
    assert same_version(one, other)


@pytest.mark.parametrize(("one", "other"), [("580.95.05", "580.95"), ("580.95.05", "580.95.50"), ("", ""), ("580", "")])
def test_different_drivers_are_different_and_a_blank_is_none(one: str, other: str):
    assert not same_version(one, other)


@given(st.text(max_size=12), st.text(max_size=12))
def test_whatever_a_node_says_can_be_compared(one: str, other: str):
    assert same_version(one, other) == same_version(other, one)
