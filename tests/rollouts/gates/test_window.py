from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollouts.gates.base import Answer, Evidence, GateResult, WindowEvidence
from rollouts.gates.window import COMES_BY_ITSELF, Window
from tests.make import NOON
from tests.rollouts.gates.random_evidence import some_evidence
from tests.rollouts.make import a_held_target, evidence, values_of

HOUR = timedelta(hours=1)
OPEN, SHUT = "The maintenance window of cluster north is open until 13:00 UTC.", "It is closed until 14:00 UTC."


def hours(*from_until: float) -> tuple[tuple[datetime, datetime], ...]:
    """hours(-1, 1, 23, 25): from an hour ago for two hours, and tomorrow again."""
    return tuple(
        (NOON + since * HOUR, NOON + until * HOUR) for since, until in zip(*[iter(from_until)] * 2, strict=True)
    )


NOW, LATER = hours(-1, 1), hours(2, 4)


def an_open_one(*nodes: str, openings=NOW) -> WindowEvidence:
    return WindowEvidence(nodes or ("node-1",), OPEN, openings)


def a_shut_one(*nodes: str, openings=LATER) -> WindowEvidence:
    return WindowEvidence(nodes or ("node-1",), SHUT, openings)


def evaluated(*windows: WindowEvidence, must_last: timedelta = timedelta(0)) -> GateResult:
    names = [name for one in windows for name in one.nodes]
    shown = evidence(*[a_held_target(name) for name in names or ["node-1"]], windows=windows)
    return Window(must_last=must_last).evaluate(shown, now=NOON)


def test_passes_while_it_is_open_and_says_until_when():
    result = evaluated(an_open_one())

    assert (result.answer, result.summary) == (Answer.PASS, OPEN)
    assert values_of(result)["Until"] == (NOON + HOUR).isoformat()


def test_waits_while_it_is_closed_with_the_next_opening():
    result = evaluated(a_shut_one())

    assert (result.answer, result.cause, result.summary) == (Answer.WAIT, "closed", SHUT)
    assert values_of(result)["Opens"] == (NOON + 2 * HOUR).isoformat()


@pytest.mark.parametrize(("openings", "answer"), [(hours(0, 1), Answer.PASS), (hours(-1, 0), Answer.WAIT)])
def test_it_is_open_from_its_first_instant_until_just_before_its_last(openings, answer: Answer):
    assert evaluated(an_open_one(openings=openings)).answer is answer


def test_waits_for_good_where_no_window_covers_a_node_also_beside_one_that_is_open():
    result = evaluated(an_open_one("node-1"), WindowEvidence(("node-2",)))

    assert (result.answer, result.cause, result.is_final) == (Answer.WAIT, "no-window", True)
    assert result.sentence == "No maintenance window covers node-2."


def test_waits_for_good_for_one_that_opens_no_more():
    result = evaluated(WindowEvidence(("node-1",), "It does not open again. Remove it.", ()))

    assert (result.answer, result.cause, result.is_final) == (Answer.WAIT, "never", True)
    assert result.sentence == "No later maintenance window is open. It does not open again. Remove it."


@pytest.mark.parametrize(("left_min", "answer"), [(30, Answer.PASS), (29, Answer.WAIT)])
def test_begins_no_wave_with_less_of_it_left_than_asked(left_min: int, answer: Answer):
    """Z3: what has begun goes on, so that it would go on outside."""
    closes_in = left_min / 60
    result = evaluated(an_open_one(openings=hours(-1, closes_in, 23, 25)), must_last=HOUR / 2)

    assert result.answer is answer
    if answer is Answer.WAIT:
        assert result.cause in COMES_BY_ITSELF
        assert result.title == "The maintenance window closes in less than 30 min"
        assert result.summary == OPEN


def test_openings_that_are_all_too_short_are_waited_for_by_nobody():
    too_short = evaluated(an_open_one(openings=hours(-1, 1, 23, 25)), must_last=3 * HOUR)
    none_long = evaluated(a_shut_one(), must_last=3 * HOUR)

    assert {too_short.cause, none_long.cause} == {"never"}
    assert too_short.is_final
    assert none_long.is_final
    assert too_short.sentence == f"No later maintenance window is open for 3 h. {OPEN}"
    assert none_long.sentence == f"No later maintenance window is open for 3 h. {SHUT}"


def test_a_short_opening_that_comes_before_a_long_one_is_passed_by():
    result = evaluated(a_shut_one(openings=hours(2, 3, 10, 14)), must_last=3 * HOUR)

    assert (result.cause, values_of(result)["Opens"]) == ("closed", (NOON + 10 * HOUR).isoformat())
    assert result.sentence == f"The next maintenance window is too short. {SHUT}"


def test_nodes_whose_window_is_closed_hold_no_others_up():
    """They are held back by themselves; the gate says of how many it speaks."""
    result = evaluated(a_shut_one("node-1"), an_open_one("node-2"))

    assert result.answer is Answer.PASS
    assert result.sentence == f"A maintenance window is open for 1 of 2 nodes. {OPEN}"


def test_of_several_that_are_closed_the_one_that_opens_first_is_named():
    later = WindowEvidence(("node-1",), "Later.", hours(9, 10))

    assert evaluated(later, a_shut_one("node-2")).summary == SHUT


def test_what_nobody_sees_is_no_pass_and_nobody_left_is_one():
    unseen = Window().evaluate(evidence(a_held_target()), now=NOON)
    without_target = Window().evaluate(evidence(windows=()), now=NOON)

    assert (unseen.answer, unseen.cause) == (Answer.WAIT, "unseen")
    assert (without_target.answer, without_target.cause) == (Answer.WAIT, "no-target")
    assert evaluated().answer is Answer.PASS


def test_longer_than_any_window_may_be_open_is_refused():
    with pytest.raises(ValueError, match="at most 7 days"):
        Window(must_last=timedelta(days=8))


@given(shown=some_evidence(), must_last=st.integers(0, 200_000).map(lambda seconds: timedelta(seconds=seconds)))
def test_passes_only_where_every_node_is_covered_and_each_open_window_lasts(shown: Evidence, must_last: timedelta):
    """No answer is never a pass, and no wave goes into a closing window."""
    result = Window(must_last=must_last).evaluate(shown, now=NOON)

    if result.answer is not Answer.PASS:
        assert result.answer is Answer.WAIT  # of a window nothing halts
        return
    assert shown.windows is not None
    under_way = [one for one in shown.windows if any(since <= NOON < until for since, until in one.openings[:1])]
    assert all(one.sentence for one in shown.windows)
    assert under_way or not shown.windows
    assert all(one.openings[0][1] - NOON >= must_last for one in under_way)
