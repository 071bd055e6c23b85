from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollouts.commands.duration import StageTime, duration_of
from rollouts.commands.preview import preview
from rollouts.node_order.node_selection import bound_on_failure_rate, nodes_for
from tests.make import NOON
from tests.rollouts.rows import CANARY, REST, a_draft

MINUTE = timedelta(minutes=1)
times = st.builds(
    StageTime, st.integers(0, 5000), st.integers(1, 100), st.timedeltas(timedelta(), timedelta(days=7)), st.booleans()
)


def test_it_is_reckoned_from_waves_soaks_and_what_nodes_took():
    stages = [StageTime(2, 1, 30 * MINUTE, is_asked=True), StageTime(4, 2, 30 * MINUTE, is_asked=True)]

    told = duration_of(stages, took=[7 * MINUTE, 9 * MINUTE])

    assert told.takes == 4 * 8 * MINUTE + 60 * MINUTE, "what nodes took includes the wait for the operator"
    assert told.sentence == (
        "About 1 h 32 min: 4 waves of 8 min (as 2 nodes took so far), 1 h of soak. "
        "The wait for 2 approvals is not in it."
    )


def test_before_the_first_node_it_says_what_it_assumes():
    told = duration_of([StageTime(1, 1, timedelta(), is_asked=False)], took=())

    assert told.sentence == (
        "About 10 min: 1 wave of 8 min (default for a compiled driver), up to 2 min until the operator looks, no soak."
    )


def test_what_test_jobs_take_is_not_in_it_and_that_is_said():
    stages = [StageTime(1, 1, timedelta(), is_asked=True, is_tested=True)]

    assert duration_of(stages, took=()).sentence.endswith("The wait for 1 approval and for test Jobs is not in it.")
    over = StageTime(0, 1, timedelta(), is_asked=False, is_tested=True)
    assert "test Jobs" not in duration_of([over], took=()).sentence


def test_a_soak_alone_names_no_waves():
    told = duration_of([StageTime(0, 1, 30 * MINUTE, is_asked=False)], took=[MINUTE])

    assert told.sentence == "About 30 min: 30 min of soak."


@given(st.lists(times, max_size=5))
def test_it_is_never_shorter_than_its_soaks(stages):
    assert duration_of(stages, took=()).takes >= sum((stage.soak for stage in stages), timedelta())


@given(st.floats(0.001, 0.999))
def test_so_many_nodes_and_no_fewer_show_a_rate(rate):
    nodes = nodes_for(rate)

    assert bound_on_failure_rate(nodes) <= rate + 1e-9
    assert nodes == 1 or bound_on_failure_rate(nodes - 1) > rate - 1e-9


def test_the_preview_says_what_the_canary_gives_and_what_it_would_take(cluster, owner):
    """Z29: how many nodes, and for how long they are looked at."""
    said = preview(a_draft(cluster, owner), now=NOON).canary_shows

    assert said == (
        "For 95 % confidence that under 10 % of all nodes would fail, 29 canary nodes must not, "
        "and the plan has 3 nodes; 1 node can only show that at most 95 % would. "
        "The canary has no soak, so it shows only immediate problems."
    )


@pytest.mark.parametrize(
    ("soak", "says"),
    [
        ({"duration_s": 600}, "The canary's soak of 10 min cannot show problems that begin later."),
        (
            {"duration_s": 600, "advisory": True, "reason": "x"},
            "The canary has no soak, so it shows only immediate problems",
        ),
    ],
)
def test_a_canary_shows_no_fault_that_begins_after_its_soak(cluster, owner, soak, says):
    """Z29."""
    canary = replace(CANARY, gate_options=CANARY.gate_options | {"soak": soak})

    assert says in preview(a_draft(cluster, owner, stages=(canary, REST)), now=NOON).canary_shows


def test_five_nodes_meet_a_fault_of_one_in_ten_in_less_than_half_of_all_cases():
    """Z29: what is detectable has at least one node in the canary."""
    meets = 1 - 0.9**5

    assert round(meets, 2) == 0.41
    assert bound_on_failure_rate(5) > 0.1  # so that five nodes without a failure do not show it to be absent
    assert 1 - 0.9 ** nodes_for(0.1) >= 0.95 > 1 - 0.9 ** (nodes_for(0.1) - 1)
