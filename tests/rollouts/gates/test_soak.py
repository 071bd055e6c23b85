from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from rollouts.gates.base import Answer
from rollouts.gates.soak import Soak
from tests.make import NOON
from tests.rollouts.make import a_target, evidence

DURATION = timedelta(minutes=30)
GATE = Soak(DURATION)


def test_the_clock_stands_until_every_other_gate_passes():
    assert GATE.judge(evidence(a_target()), now=NOON).answer is Answer.HOLD


@given(st.integers(0, 7200))
def test_passes_when_the_others_have_passed_for_as_long_as_asked(soaked_s: int):
    shown = evidence(a_target(), others_passing_since=NOON - timedelta(seconds=soaked_s))

    verdict = GATE.judge(shown, now=NOON)

    assert verdict.answer is (Answer.PASS if soaked_s >= DURATION.total_seconds() else Answer.HOLD)
    assert verdict.measured == {"soaked_s": soaked_s, "needed_s": 1800}


def test_says_how_long_it_still_takes():
    shown = evidence(a_target(), others_passing_since=NOON - timedelta(minutes=25, seconds=50))

    assert GATE.judge(shown, now=NOON).because == "4 min 10 s of 30 min to go."
