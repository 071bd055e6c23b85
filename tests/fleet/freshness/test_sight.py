from datetime import timedelta

import pytest

from fleet.freshness.observation_state import ObservationState, observation_of
from fleet.models import Bookmark, Observer
from fleet.models.observer import GRACE
from tests.make import NOON

AGO = timedelta(minutes=4)


def a_mark(kind="nodes", *, heard=timedelta(seconds=5), state="watching", message=""):
    last_seen_at = None if heard is None else NOON - heard
    since = NOON - timedelta(seconds=20)
    return Bookmark(
        kind=kind, state=state, state_since=since, last_seen_at=last_seen_at, listed_at=last_seen_at, message=message
    )


def an_observer(**given):
    return Observer(**{"epoch": 7, "lease_until": NOON + timedelta(seconds=20)} | given)


@pytest.mark.parametrize(
    ("marks", "state"),
    [
        ([], ObservationState.CONNECTING),
        ([a_mark(heard=None, state="listing")], ObservationState.CONNECTING),
        ([a_mark(heard=None, state="failing")], ObservationState.NEVER),
        ([a_mark()], ObservationState.LIVE),
        ([a_mark(state="failing")], ObservationState.FAILING),
        ([a_mark(), a_mark("pods", state="failing"), a_mark("events", state="failing")], ObservationState.FAILING),
        ([a_mark(), a_mark("pods", state="failing"), a_mark("events")], ObservationState.LIVE),
        ([a_mark(heard=AGO)], ObservationState.STALE),
        ([a_mark(heard=AGO, state="failing")], ObservationState.STALE),
        ([a_mark(state="forbidden")], ObservationState.FORBIDDEN),
        ([a_mark(heard=None, state="forbidden")], ObservationState.FORBIDDEN),
    ],
)
def test_a_cluster_is_seen_as_its_kinds_are(marks, state):
    assert observation_of(marks, an_observer(), now=NOON).state is state


def test_kinds_that_are_listed_for_the_first_time_are_named_with_how_long_it_takes():
    first = [a_mark(kind, heard=None, state="listing") for kind in ("pods", "events", "nodes", "services")]

    loading = observation_of(first, an_observer(), now=NOON)
    live = observation_of([a_mark(), a_mark("pods", heard=None, state="listing")], an_observer(), now=NOON)
    again = observation_of([a_mark(state="listing")], an_observer(), now=NOON)

    assert loading.word == "loading: nodes, pods and 2 more (20 s)"
    assert (live.word, live.loading) == ("live", "loading: pods (20 s)")
    assert (again.word, again.loading) == ("live", "")


def test_one_that_fails_is_not_live_for_90_seconds_more():
    """As soon as its kinds fail, its dot and its words say so."""
    mark = a_mark(state="failing", heard=timedelta(seconds=75), message="Connection refused.")

    seen = observation_of([mark], an_observer(), now=NOON)

    assert (seen.word, seen.glyph) == ("failing, noticed at 11:59:40", "bad")
    assert seen.sentence == (
        "The cluster does not answer. Last observed at 11:58:45 UTC, noticed at 11:59:40 UTC. Connection refused."
    )
    assert "API server" in seen.action


def test_one_most_of_whose_kinds_fail_says_since_then_and_not_since_its_nodes_are_watched():
    marks = [a_mark(), a_mark("pods", state="failing"), a_mark("events", state="failing")]
    marks[0].state_since = NOON - timedelta(days=3)

    seen = observation_of(marks, an_observer(), now=NOON)

    assert seen.word == "failing, noticed at 11:59:40"
    assert seen.sentence == "Most of its kinds do not answer: noticed at 11:59:40 UTC."


def test_one_that_was_never_reached_says_since_when_it_is_tried_why_and_when_again():
    observer = an_observer(
        lease_until=NOON, failures=4, failing_since=NOON - timedelta(hours=2), next_look_at=NOON + timedelta(minutes=1)
    )

    seen = observation_of([a_mark(heard=None, state="failing", message="No route to host.")], observer, now=NOON)

    assert not seen.is_known
    assert seen.word == "never reached"
    assert seen.sentence == (
        "The cluster was never reached, since 10:00:00 UTC. No route to host. The next try is at 12:01:00 UTC."
    )
    assert "bin/manage doctor" in seen.action


def test_one_whose_turn_nobody_takes_is_unwatched_but_not_while_it_waits_for_its_time():
    late = NOON - GRACE - timedelta(seconds=1)

    assert observation_of([a_mark()], an_observer(lease_until=late), now=NOON).unwatched_since == late
    assert (
        "No worker watches the cluster since"
        in observation_of([a_mark()], an_observer(lease_until=late), now=NOON).sentence
    )
    assert observation_of([a_mark()], an_observer(lease_until=NOON - GRACE), now=NOON).unwatched_since is None
    waits = an_observer(lease_until=late, next_look_at=NOON + timedelta(minutes=1))
    assert observation_of([a_mark()], waits, now=NOON).unwatched_since is None
    assert observation_of([], None, added_at=late, now=NOON).unwatched_since == late
