"""What a repeated key means (Z37)."""

from dataclasses import replace

import pytest

from edges.idempotency import EarlierCommand, IdempotencyKey, Repeat, is_done, repeat_of
from tests.make import NOON

BODY = {"reason": "Fans are loud.", "seen": None}
ASKED = IdempotencyKey.of("k1", person="ada", verb="halt", body=BODY)
CARRIED_OUT = EarlierCommand(ASKED, NOON, holds=True, now_is=lambda: "The plan is promoting.")


def of(**other) -> EarlierCommand:
    return replace(CARRIED_OUT, key=replace(ASKED, **other))


@pytest.mark.parametrize(
    ("earlier", "repeat"),
    [
        (None, Repeat.NEW),
        (of(key="k2"), Repeat.NEW),
        (of(person="ben"), Repeat.NEW),
        (CARRIED_OUT, Repeat.DONE),
        (replace(CARRIED_OUT, holds=False), Repeat.UNDONE),
        (of(verb="pause"), Repeat.ANOTHER),
        (of(body="of another body"), Repeat.ANOTHER),
        (of(body=""), Repeat.DONE),
        (replace(of(body=""), holds=False), Repeat.UNDONE),
    ],
)
def test_what_a_key_means_that_comes_again(earlier: EarlierCommand | None, repeat: Repeat):
    assert repeat_of(ASKED, earlier) is repeat


def test_without_a_key_nothing_is_a_repeat():
    unnamed = replace(ASKED, key="")

    assert repeat_of(unnamed, replace(CARRIED_OUT, key=unnamed)) is Repeat.NEW


def test_the_order_of_a_body_is_no_part_of_it():
    assert IdempotencyKey.of("k1", person="ada", verb="halt", body=dict(reversed(BODY.items()))) == ASKED


def test_what_was_undone_is_refused_with_what_is_so_now():
    with pytest.raises(ValueError, match="halt from 2026-11-21 12:00:00 UTC is no longer in effect") as refused:
        is_done(ASKED, replace(CARRIED_OUT, holds=False), refusal=ValueError)

    assert "The plan is promoting." in str(refused.value)
