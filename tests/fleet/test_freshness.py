from datetime import timedelta

import pytest

from fleet.freshness import Freshness, by_kind, freshness_of
from fleet.models import Bookmark
from tests.make import NOON


def a_mark(state: str, *, heard_ago_s: float | None = None, has_listed: bool = True, message: str = "") -> Bookmark:
    heard_at = None if heard_ago_s is None else NOON - timedelta(seconds=heard_ago_s)
    listed_at = NOON - timedelta(hours=1) if has_listed else None
    return Bookmark(kind="nodes", state=state, heard_at=heard_at, listed_at=listed_at, message=message)


@pytest.mark.parametrize(
    ("mark", "state"),
    [
        (a_mark("watching", heard_ago_s=0), Freshness.LIVE),
        (a_mark("watching", heard_ago_s=90), Freshness.LIVE),
        (a_mark("watching", heard_ago_s=91), Freshness.STALE),
        (a_mark("failing", heard_ago_s=10), Freshness.LIVE),
        (a_mark("failing", heard_ago_s=300), Freshness.STALE),
        (a_mark("failing", has_listed=False), Freshness.NEVER),
        (a_mark("listing", heard_ago_s=1, has_listed=False), Freshness.LOADING),
        (a_mark("listing", heard_ago_s=300), Freshness.STALE),
        (a_mark("forbidden", heard_ago_s=1), Freshness.FORBIDDEN),
        (a_mark("absent"), Freshness.ABSENT),
    ],
)
def test_where_a_kind_stands(mark, state):
    assert freshness_of(mark, now=NOON).state == state


def test_a_clock_that_is_ahead_makes_no_negative_age():
    assert freshness_of(a_mark("watching", heard_ago_s=-3), now=NOON).age_s == 0.0


def test_a_stale_kind_says_since_when_and_why():
    found = freshness_of(a_mark("failing", heard_ago_s=300, message="Connection refused."), now=NOON)

    assert found.sentence == "Nodes have not been seen since 2026-11-21 11:55:00 UTC. Connection refused."


def test_kinds_nobody_watched_are_said_to_be_unseen():
    found = by_kind([], now=NOON)

    assert {kind: row.state for kind, row in found.items()} == {"nodes": Freshness.NEVER, "pods": Freshness.NEVER}
    assert not found["nodes"].is_known
