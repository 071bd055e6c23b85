import pytest
from hypothesis import given
from hypothesis import strategies as st

from edges.digits import whole_number


@given(st.integers(0, 10**18 - 1))
def test_what_is_written_in_ascii_is_read(number: int):
    assert whole_number(str(number)) == number


@given(st.text(max_size=30))
def test_no_text_does_more_than_be_none(text: str):
    assert (whole_number(text) is not None) == (0 < len(text) <= 18 and set(text) <= set("0123456789"))


@pytest.mark.parametrize("text", ["１２", "²", "٣", "1_0", "+1", " 1", "-1", "", "9" * 5_000])
def test_digits_of_other_scripts_are_none(text: str):
    assert whole_number(text) is None
