"""A finding moves as its table says, and only from the state in which it was read."""

import pytest

from edges.transition_errors import IllegalMove, LostRace
from health.lifecycle import FINDING_MOVES, FindingState
from health.models import Finding
from tests.make import NOON, a_cluster, a_finding

pytestmark = pytest.mark.django_db
PAIRS = [(was, to) for was in FindingState for to in FindingState]


@pytest.mark.parametrize(("was", "to"), PAIRS)
def test_no_finding_makes_a_move_that_is_not_in_the_table(was, to):
    finding = a_finding(a_cluster(), state=was)

    if to in FINDING_MOVES[was]:
        finding.move(to, now=NOON)
        assert Finding.objects.get().state == finding.state == to
    else:
        with pytest.raises(IllegalMove):
            finding.move(to, now=NOON)
        assert Finding.objects.get().state == was


def test_who_moved_second_has_moved_nothing():
    finding = a_finding(a_cluster())
    Finding.objects.get().move(FindingState.RESOLVED, now=NOON)

    with pytest.raises(LostRace):
        finding.move(FindingState.ACKNOWLEDGED, now=NOON)

    assert Finding.objects.get().state == FindingState.RESOLVED


def test_every_finding_can_be_resolved_but_one_that_nobody_was_told_of():
    reach = {state for state in FindingState if FindingState.RESOLVED in FINDING_MOVES[state]}

    assert reach == {FindingState.OPEN, FindingState.ACKNOWLEDGED, FindingState.MUTED}
