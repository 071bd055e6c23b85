from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wording.durations import spell


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(-5, "0 s"), (0.9, "0 s"), (59.9, "59 s"), (60, "1 min"), (65, "1 min 5 s"), (3600, "1 h"), (3605, "1 h"),
     (7500, "2 h 5 min"), (86_400, "1 d"), (93_600, "1 d 2 h"), (86_460, "1 d")],
)  # fmt: skip
def test_two_units_side_by_side(seconds, said):
    assert spell(timedelta(seconds=seconds)) == said


@given(st.timedeltas(min_value=timedelta(0)))
def test_it_never_says_more_than_it_is(duration):
    units = {"d": 86_400, "h": 3_600, "min": 60, "s": 1}
    words = spell(duration).split()

    said = sum(int(number) * units[unit] for number, unit in zip(words[::2], words[1::2], strict=True))

    assert said <= duration.total_seconds() < said + units[words[1]]
