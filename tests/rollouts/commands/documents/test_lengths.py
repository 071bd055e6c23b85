import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollouts.commands.documents.lengths import read_length, write_length


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90), ("30m", 1800), ("1h30m", 5400), ("2d", 172_800), ("2 h 5 min", 7500), ("0s", 0), ("1.5s", 1.5),
        (" 1d2h3m4s ", 93_784),
    ],
)  # fmt: skip
def test_reads_what_people_write(text: str, seconds: float):
    assert read_length(text) == seconds


@pytest.mark.parametrize("text", ["", " ", "30", "m", "1m1h", "-1s", "1.5h", "１m", "1w", "9" * 99 + "s"])
def test_what_has_no_unit_or_no_number_is_none(text: str):
    assert read_length(text) is None


@pytest.mark.parametrize(("seconds", "text"), [(0, "0s"), (60, "1m"), (5400.0, "1h30m"), (90061.5, "1d1h1m1.5s")])
def test_writes_the_largest_units_first(seconds: float, text: str):
    assert write_length(seconds) == text


@given(st.integers(0, 10**8) | st.floats(1e-12, 3.2e7).map(lambda seconds: round(seconds, 6)))
def test_what_is_written_is_read_as_it_was(seconds: float):
    assert read_length(write_length(seconds)) == seconds
