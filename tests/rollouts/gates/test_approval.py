from datetime import timedelta

import pytest

from rollouts.gates.approval import ApprovalGate
from rollouts.gates.base import Answer
from tests.make import NOON
from tests.rollouts.make import an_approval, evidence

GATE = ApprovalGate(needed=2, valid_for=timedelta(hours=8))


def answer_to(*approvals) -> Answer:
    return GATE.evaluate(evidence(approvals=approvals), now=NOON).answer


def test_waits_for_as_many_people_as_asked():
    assert answer_to() is Answer.WAIT
    assert answer_to(an_approval("amy")) is Answer.WAIT
    assert answer_to(an_approval("amy"), an_approval("bob")) is Answer.PASS


def test_one_person_twice_is_one_person():
    assert answer_to(an_approval("amy"), an_approval("amy")) is Answer.WAIT


def test_the_authors_own_does_not_count():
    assert answer_to(an_approval("amy"), an_approval("ada", is_by_author=True)) is Answer.WAIT


@pytest.mark.parametrize(("age", "expected"), [(timedelta(hours=8), Answer.PASS), (timedelta(hours=9), Answer.WAIT)])
def test_an_approval_is_for_a_night_and_not_for_a_week(age: timedelta, expected: Answer):
    assert answer_to(an_approval("amy"), an_approval("bob", at=NOON - age)) is expected


def test_one_rejection_outweighs_all_approvals():
    rejection = an_approval("eve", is_rejection=True, reason="Month end.")

    result = GATE.evaluate(evidence(approvals=(an_approval("amy"), an_approval("bob"), rejection)), now=NOON)

    assert result.answer is Answer.FAIL
    assert result.sentence == "eve rejected the stage. Reason: Month end."
