"""When a rollout of others begins, where its nodes are, and how it ends: pure."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollouts.components.base import Phase
from rollouts.external_rollouts.gate_options import ASKED, LEFT_OUT
from rollouts.external_rollouts.observations import STILL, NodeLook, became, begins, ends, is_untouched, shows_before
from rollouts.gates import GATES
from rollouts.gates.base import TargetEvidence
from rollouts.gates.options import write_options
from rollouts.lifecycle import BEGUN, EXTERNAL_ROLLOUT_MOVES, ExternalRolloutState, TargetState
from tests.make import NOON
from tests.rollouts.gates.random_evidence import targets
from tests.rollouts.make import NEW, OLD, a_baseline, a_target

HELD, BEFORE, CHANGING, CHANGED, FAILED, GONE = (
    TargetState.HELD,
    TargetState.RELEASED,
    TargetState.CHANGING,
    TargetState.CHANGED,
    TargetState.FAILED,
    TargetState.EXCLUDED,
)


def a_look(phase: Phase = Phase.DONE, *, is_held: bool = False, runs_it: bool = False, has_other_pod: bool = False):
    return NodeLook("uid", "node-1", phase, is_held, runs_it, has_other_pod)


def test_every_gate_evaluates_an_external_rollout_or_the_table_says_why_not():
    asked = [gate.key for gate in ASKED]

    assert [key for key in GATES if key not in LEFT_OUT] == asked
    assert set(GATES) == {*asked, *LEFT_OUT}
    assert all(write_options(gate) == write_options(GATES[gate.key]()) for gate in ASKED)


def test_a_rollout_begins_when_the_version_changes():
    assert begins(was=OLD, version=NEW, at_work=[]) == f"The object requests {NEW} now. Before, it requested {OLD}."
    assert begins(was="", version=NEW, at_work=[]) == f"The object requests {NEW} now. Before, it requested no version."


def test_a_rollout_begins_when_the_operator_changes_a_node_that_no_plan_of_ours_let_go():
    reason = begins(was=OLD, version=OLD, at_work=["gpu-1", "gpu-2"])
    assert reason == "The operator changes gpu-1, gpu-2: no plan is in progress."


def test_nothing_begins_while_nothing_changes_or_no_version_is_said():
    assert not begins(was=OLD, version=OLD, at_work=[])
    assert not begins(was=OLD, version="", at_work=["gpu-1"])


@pytest.mark.parametrize(
    ("look", "was", "state"),
    [
        (a_look(), None, BEFORE),
        (a_look(is_held=True), None, HELD),
        (a_look(Phase.QUEUED), BEFORE, BEFORE),
        (a_look(Phase.QUEUED, is_held=True), BEFORE, HELD),
        (a_look(Phase.QUEUED, is_held=True, has_other_pod=True), HELD, CHANGING),  # recreated: it took it though held
        (a_look(Phase.AT_WORK), BEFORE, CHANGING),
        (a_look(Phase.AT_WORK, runs_it=True), CHANGING, CHANGING),
        (a_look(Phase.UNKNOWN, has_other_pod=True), BEFORE, CHANGING),  # by hand, without the upgrade controller
        (a_look(Phase.DONE, runs_it=True), CHANGING, CHANGED),
        (a_look(Phase.DONE, has_other_pod=True), CHANGING, CHANGING),  # through, and nobody names the driver yet
        (a_look(Phase.DONE), CHANGED, CHANGING),  # its label went: not back where it began
        (a_look(Phase.QUEUED), CHANGED, BEFORE),
        (a_look(Phase.FAILED, runs_it=True), CHANGING, FAILED),
        (a_look(Phase.DONE, runs_it=True), FAILED, CHANGED),
    ],
)
def test_a_node_is_where_the_cluster_shows_it(look: NodeLook, was: TargetState | None, state: TargetState):
    assert became(look, was) is state


looks = st.builds(
    NodeLook,
    uid=st.just("uid"),
    name=st.just("node-1"),
    phase=st.sampled_from(Phase),
    is_held=st.booleans(),
    runs_it=st.booleans(),
    has_other_pod=st.booleans(),
)


@given(looks, st.none() | st.sampled_from(TargetState))
def test_whatever_is_seen_a_node_is_in_one_state_and_changed_only_where_the_driver_is_read_from_it(look, was):
    state = became(look, was)

    assert state in {HELD, BEFORE, CHANGING, CHANGED, FAILED}
    assert (state is CHANGED) <= (look.runs_it and look.phase in {Phase.DONE, Phase.UNKNOWN})
    assert (state in {HELD, BEFORE}) <= (not look.has_other_pod and look.phase is not Phase.AT_WORK)
    assert became(look, state) is state  # seen again, it stays where it is


@given(looks, st.booleans(), st.booleans())
def test_what_has_begun_unseen_is_never_what_a_node_is_compared_with(look, is_first, is_watched):
    state = became(look, None)

    if shows_before(state, is_first=is_first, is_watched=is_watched):
        assert state in {HELD, BEFORE} or (state is CHANGED and is_first and is_watched)
        assert state not in {CHANGING, FAILED}


def an_end(*states: TargetState, **given_: object):
    row = {
        "version": NEW,
        "asked_for": NEW,
        "all_pass": False,
        "is_known": True,
        "is_touched": True,
        "unproven": "",
        "moved_at": NOON,
        "now": NOON,
    }
    return ends({f"uid-{n}": state for n, state in enumerate(states)}, **row | given_)


def test_it_came_through_when_every_gate_passes():
    assert an_end(CHANGED, CHANGED, all_pass=True).to is ExternalRolloutState.CAME_THROUGH
    assert an_end(CHANGED, CHANGED) is None


def test_another_version_replaces_it_whatever_its_gates_say():
    assert an_end(CHANGED, BEFORE, asked_for=OLD, all_pass=True).to is ExternalRolloutState.REPLACED
    assert an_end(CHANGED, BEFORE, asked_for="").to is ExternalRolloutState.GIVEN_UP


def test_what_was_over_before_anybody_looked_is_given_up_and_not_passed():
    step = an_end(CHANGED, CHANGED, is_known=False)
    assert step.to is ExternalRolloutState.GIVEN_UP
    assert "is unknown" in step.reason
    assert an_end(CHANGED, CHANGING, is_known=False) is None


def test_what_nobody_drives_any_more_is_given_up_after_a_week():
    assert an_end(CHANGED, HELD, now=NOON + STILL) is None
    step = an_end(CHANGED, HELD, now=NOON + STILL + timedelta(seconds=1))
    assert (step.to, step.reason) == (ExternalRolloutState.GIVEN_UP, "No node changed for 7 d.")


def test_an_upgrade_of_idle_nodes_is_given_up_as_not_shown():
    nothing = "Nothing has tested the driver on node-1."
    step = an_end(CHANGED, CHANGED, unproven=nothing, now=NOON + STILL + timedelta(seconds=1))
    assert (step.to, step.reason) == (ExternalRolloutState.GIVEN_UP, f"Not shown within 7 d: {nothing}")


def test_where_no_node_has_to_change_there_is_nothing_to_evaluate():
    step = an_end(CHANGED, CHANGED, is_touched=False)
    assert (step.to, step.reason) == (ExternalRolloutState.GIVEN_UP, "No node must change for this version.")


@given(targets("node-1"))
def test_only_a_changed_node_with_the_driver_pod_it_had_is_left_unevaluated(target: TargetEvidence):
    if is_untouched(target):
        assert target.state is CHANGED
        assert target.driver_started_at < target.baseline.at


def test_a_node_whose_driver_pod_began_after_its_baseline_is_evaluated():
    at = NOON - timedelta(hours=1)
    assert not is_untouched(a_target(baseline=a_baseline(at=at), driver_started_at=NOON))
    assert is_untouched(a_target(baseline=a_baseline(at=at), driver_started_at=at - timedelta(hours=1)))
    assert not is_untouched(a_target(baseline=a_baseline(at=at), driver_started_at=at))  # told to the second
    assert not is_untouched(a_target(baseline=None))
    assert not is_untouched(a_target(state=BEFORE, driver_started_at=at - timedelta(hours=1)))


def test_without_a_node_there_is_nothing_to_follow():
    assert an_end(GONE, GONE).to is ExternalRolloutState.GIVEN_UP


@given(
    st.lists(st.sampled_from([HELD, BEFORE, CHANGING, CHANGED, FAILED, GONE]), max_size=4),
    st.booleans(),
    st.booleans(),
    st.sampled_from([NEW, OLD, ""]),
    st.timedeltas(timedelta(0), timedelta(days=30)),
)
def test_it_ends_only_as_the_table_allows_and_passes_only_by_its_gates(states, all_pass, is_known, asked_for, still):
    step = an_end(*states, all_pass=all_pass, is_known=is_known, asked_for=asked_for, now=NOON + still)

    if step is not None:
        assert step.to in EXTERNAL_ROLLOUT_MOVES[ExternalRolloutState.ROLLING]
        assert step.reason.endswith(".")
        assert (step.to is ExternalRolloutState.CAME_THROUGH) <= (all_pass and asked_for == NEW)
    elif BEGUN.isdisjoint(states):
        assert still <= STILL
