import pytest
from django.http import QueryDict

from edges.offsets import with_offset


@pytest.mark.parametrize(
    "spelt",
    ["2026-11-30T02:40+02:00", "2026-11-30T02:40:07+05:30", "2026-11-30T02:40:07.25+00:00", "2026-11-30 02:40+02:00"],
)
def test_an_offset_that_an_address_made_a_blank_of_is_one_again(spelt):
    sent = QueryDict(f"at={spelt}")["at"]

    assert sent != spelt
    assert with_offset(sent) == spelt


@pytest.mark.parametrize("spelt", ["2026-11-30T02:40Z", "2026-11-30 02:40", "2026-11-30T02:40-02:00", "02:40 x", " "])
def test_what_lost_none_stays_as_it_is(spelt):
    assert with_offset(spelt) == spelt
