"""Fields for times show a 24-hour clock in every browser: a browser's own follow its language."""

import re
from datetime import UTC, date, datetime, time

import pytest

from edges.fields import ClockTime, DateAndTime, Day


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [
        (DateAndTime(), "2026-11-30 20:15", datetime(2026, 11, 30, 20, 15, tzinfo=UTC)),
        (DateAndTime(), "2026-11-30T20:15", datetime(2026, 11, 30, 20, 15, tzinfo=UTC)),
        (Day(), "2026-11-30", date(2026, 11, 30)),
        (ClockTime(), "20:15", time(20, 15)),
    ],
)
def test_times_are_written_as_text_on_a_24_hour_clock(field, text, value):
    shown = field.widget.attrs

    assert field.widget.input_type == "text"
    assert field.clean(text) == value
    for example in (text, shown["placeholder"]):
        assert re.fullmatch(shown["pattern"], example)
    assert not re.fullmatch(shown["pattern"], f"{text} PM".replace("20:15", "8:15"))
    assert shown["placeholder"] in shown["title"]
