from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from wording.instants import moment, to_the_minute, to_the_second

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)  # a Friday


@pytest.mark.parametrize(
    ("at", "words"),
    [
        (datetime(2026, 11, 20, 18, 30, tzinfo=UTC), "18:30 UTC"),
        (datetime(2026, 11, 20, 18, 30, 5, tzinfo=UTC), "18:30:05 UTC"),
        (datetime(2026, 11, 23, 8, 0, tzinfo=UTC), "Monday 08:00 UTC"),
        (datetime(2026, 11, 27, 8, 0, tzinfo=UTC), "27 November 2026 08:00 UTC"),
        (datetime(2026, 11, 19, 8, 0, tzinfo=UTC), "19 November 2026 08:00 UTC"),
    ],
)
def test_the_nearer_the_shorter(at: datetime, words: str):
    assert moment(at, now=NOW) == words


def test_what_is_told_for_good_is_told_with_its_year():
    assert (to_the_minute(NOW), to_the_second(NOW)) == ("2026-11-20 12:00 UTC", "2026-11-20 12:00:00 UTC")
    assert to_the_second(None) == "the beginning"


def test_another_zone_has_its_own_today():
    late = datetime(2026, 11, 20, 23, 30, tzinfo=UTC)

    assert moment(late, now=NOW, zone=ZoneInfo("Europe/Berlin"), called="Europe/Berlin") == (
        "Saturday 00:30 Europe/Berlin"
    )
