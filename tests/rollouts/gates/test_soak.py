from dataclasses import replace
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from rollouts.gates.base import Answer
from rollouts.gates.soak import Soak
from tests.make import NOON
from tests.rollouts.make import a_target, evidence, values_of

DURATION = timedelta(minutes=30)
GATE = Soak(DURATION)


def test_the_clock_stands_until_every_other_gate_passes():
    assert GATE.evaluate(evidence(a_target()), now=NOON).answer is Answer.WAIT


@given(st.integers(0, 7200))
def test_passes_when_the_others_have_passed_for_as_long_as_asked(soaked_s: int):
    shown = evidence(a_target(), others_passing_since=NOON - timedelta(seconds=soaked_s))

    result = GATE.evaluate(shown, now=NOON)

    assert result.answer is (Answer.PASS if soaked_s >= DURATION.total_seconds() else Answer.WAIT)
    assert values_of(result)["Until"] == (NOON - timedelta(seconds=soaked_s) + DURATION).isoformat()


@given(st.integers(0, 1799), st.integers(0, 1799))
def test_whenever_it_is_asked_it_names_the_same_instant(first_s: int, later_s: int):
    shown = evidence(a_target(), others_passing_since=NOON)

    said = [GATE.evaluate(shown, now=NOON + timedelta(seconds=at)) for at in (first_s, later_s)]

    assert said[0] == said[1]
    assert said[0].sentence == "Soak ends at 12:30 UTC. Every other gate must pass until then."


def test_a_gate_that_it_does_not_wait_for_is_not_said_to_have_passed():
    shown = evidence(a_target(), others_passing_since=NOON, others_uncounted=("Tenants' GPU pods",))
    unsoaked = replace(shown, others_passing_since=None)

    said = [
        GATE.evaluate(each, now=at).sentence for each, at in ((unsoaked, NOON), (shown, NOON), (shown, NOON + DURATION))
    ]

    assert said == [
        "The soak has not begun. It begins when every other gate but Tenants' GPU pods passes.",
        "Soak ends at 12:30 UTC. Every other gate but Tenants' GPU pods must pass until then.",
        "Soak of 30 min is complete. Every other gate but Tenants' GPU pods has passed since 12:00 UTC.",
    ]


def test_an_instant_of_another_day_is_named_with_its_day():
    """A soak takes up to a week: a time of day alone would be read as one of today."""
    gate, shown = Soak(timedelta(days=2)), evidence(a_target(), others_passing_since=NOON)
    friday = NOON + timedelta(days=2)

    assert gate.evaluate(shown, now=NOON).title == f"Soak ends at {friday:%A} 12:00 UTC"
    assert f"since {NOON.day} {NOON:%B %Y} 12:00 UTC" in gate.evaluate(shown, now=friday).summary
