"""So many people, and so many of them from each group: everybody counts for one group at most."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollouts.gates.approval import ApprovalGate, still_owed
from rollouts.gates.base import Answer
from tests.make import NOON
from tests.rollouts.make import an_approval, evidence, values_of

GATE = ApprovalGate(groups={"sre": 1, "platform": 1})


def evaluated(gate: ApprovalGate, **people: tuple[str, ...]):
    approvals = tuple(an_approval(name, groups=groups) for name, groups in people.items())
    return gate.evaluate(evidence(approvals=approvals), now=NOON)


def test_one_of_each_group_has_to_approve():
    assert evaluated(GATE, amy=("sre",), bob=("sre",)).answer is Answer.WAIT
    assert evaluated(GATE, amy=("sre",), bob=("platform",)).answer is Answer.PASS


def test_who_is_in_both_counts_for_one():
    assert evaluated(GATE, amy=("platform", "sre")).answer is Answer.WAIT
    assert evaluated(GATE, amy=("platform", "sre"), bob=("sre",)).answer is Answer.PASS


def test_more_people_than_the_groups_give_may_be_anybody():
    gate = ApprovalGate(needed=2, groups={"sre": 1})

    assert evaluated(gate, amy=(), bob=()).answer is Answer.WAIT
    assert evaluated(gate, amy=(), bob=("sre",)).answer is Answer.PASS


def test_the_sentence_and_the_numbers_say_who_is_to_come():
    result = evaluated(GATE, amy=("sre",), eve=())

    assert result.sentence == "1 of 2 approvals given. Authors and editors of the plan cannot approve it."
    assert values_of(result)["Of group platform"] == "0 of 1"
    assert values_of(result)["Of group sre"] == "1 of 1"


@pytest.mark.parametrize("groups", [{"sre": 0}, {"sre": 21}, {f"g{n}": 1 for n in range(11)}], ids=str)
def test_a_number_that_nobody_can_mean_is_refused(groups):
    with pytest.raises(ValueError, match="group"):
        ApprovalGate(groups=groups)


NAMES = ("a", "b", "c")


@given(
    st.dictionaries(st.sampled_from(NAMES), st.integers(1, 2), max_size=3),
    st.lists(st.sets(st.sampled_from(NAMES)), max_size=5),
)
def test_no_other_seating_owes_less(groups: dict[str, int], people: list[set[str]]):
    seats = [group for group, number in groups.items() for _ in range(number)]
    by_name = {str(number): those for number, those in enumerate(people)}

    best = 0
    for order in permutations([*seats, *[None] * len(people)], len(people)):
        best = max(best, sum(seat is not None and seat in those for seat, those in zip(order, people, strict=True)))

    assert sum(still_owed(groups, by_name).values()) == len(seats) - best
