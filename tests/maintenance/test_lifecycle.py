"""The state table of cases, and the moves that follow from facts."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maintenance.acts import ACTS, acts_of, why_not
from maintenance.lifecycle import (
    CASE_MOVES,
    FINAL,
    NEXT,
    PROBATION_FOR,
    TITLES,
    CaseFacts,
    CaseState,
    ChosenAfterRepair,
    NodeOperation,
    RepairAnswer,
    RepairFacts,
    RepairKind,
    TestFacts,
    next_case_move,
)
from maintenance.web.states import GLYPHS
from operations.commands import KINDS
from operations.lifecycle import NodeProgress
from tests.make import NOON

OPERATIONS = st.builds(
    NodeOperation, number=st.just(7), kind=st.sampled_from(sorted(KINDS)), progress=st.sampled_from(NodeProgress),
    is_evicting=st.booleans(), actor=st.just("ada"), reason=st.just("Xid 79."), result=st.sampled_from(["", "Done."]),
)  # fmt: skip
REPAIRS = st.builds(
    RepairFacts, kind=st.sampled_from(RepairKind), answer=st.sampled_from(["", *RepairAnswer]), asked_by=st.just("ada"),
    is_overdue=st.booleans(), boot_id=st.sampled_from(["", "a", "b"]), came_from=st.just(CaseState.DRAINED),
    deadline=st.sampled_from([NOON, NOON + timedelta(minutes=1)]), ends_at_deadline=st.booleans(),
)  # fmt: skip
TIMES = st.none() | st.sampled_from([NOON + timedelta(minutes=each) for each in range(3)])
FACTS = st.builds(
    CaseFacts, state=st.sampled_from(CaseState), since=st.just(NOON), node_name=st.just("gpu-1"),
    fault=st.sampled_from(["", "Xid 79"]), gone=st.sampled_from(["", "gpu-1 left the cluster."]),
    is_seen=st.booleans(), is_cordon_removed=st.booleans(), is_unschedulable=st.booleans(), is_ready=st.booleans(),
    boot_id=st.sampled_from(["", "a", "b"]), repair=st.none() | REPAIRS, fault_at=TIMES, repaired_at=TIMES,
    passed_at=TIMES, failed_at=TIMES, overridden_at=TIMES, has_quarantine=st.booleans(), is_quarantined=st.booleans(),
    begun=st.none() | OPERATIONS, newest=st.none() | OPERATIONS,
).map(lambda case: replace(case, is_quarantined=case.has_quarantine and case.is_quarantined))  # fmt: skip
LATER = st.sampled_from([timedelta(0), PROBATION_FOR])
A_PASS = TestFacts(9, "dcgmi diag -r 3", "passed", "Passed.", NOON, NOON)


def test_every_state_has_a_row_and_is_reached():
    for table in (CASE_MOVES, TITLES, NEXT, GLYPHS):
        assert set(table) == set(CaseState)
    reached = {to for moves in CASE_MOVES.values() for to in moves}
    assert reached == set(CaseState) - {CaseState.PROVISIONED}  # the case of a new node begins there
    assert all(not CASE_MOVES[state] for state in FINAL)


@given(FACTS, LATER)
def test_every_move_is_in_the_table_and_has_a_reason_and_an_actor(case: CaseFacts, later: timedelta):
    move = next_case_move(case, now=NOON + later)

    if move is not None:
        assert move.to in CASE_MOVES[case.state]
        assert move.reason.strip()
        assert move.actor


@given(FACTS, LATER)
def test_moves_come_to_rest(case: CaseFacts, later: timedelta):
    """The same facts never move a case in a circle."""
    passed = [case.state]
    while (move := next_case_move(case, now=NOON + later)) is not None:
        assert move.to not in passed
        passed.append(move.to)
        case = replace(case, state=move.to, fault="" if move.to == CaseState.SUSPECT else case.fault)


@given(FACTS)
def test_a_node_comes_back_only_by_a_release(case: CaseFacts):
    """L1: nothing else ends a quarantine."""
    move = next_case_move(case, now=NOON)

    if move is not None and move.to == CaseState.PROBATION:
        assert case.begun is not None
        assert (case.begun.kind, case.begun.progress) == ("release", NodeProgress.DONE)
        assert not case.has_quarantine


@given(FACTS)
def test_a_release_needs_a_pass_after_the_last_fault_repair_and_failure_or_an_override(case: CaseFacts):
    """lifecycle R39."""
    others = [each for each in (case.fault_at, case.repaired_at, case.failed_at) if each]
    is_validated = case.passed_at is not None and all(each <= case.passed_at for each in others)
    is_overridden = case.overridden_at is not None and all(each <= case.overridden_at for each in others)

    if "release" in [act.key for act in acts_of(case)]:
        assert is_validated or is_overridden


@given(FACTS)
def test_a_reboot_is_proven_only_by_another_boot_of_a_ready_node(case: CaseFacts):
    """Z44, lifecycle R6."""
    case = replace(case, state=CaseState.IN_REPAIR, gone="")
    move = next_case_move(case, now=NOON)

    if move is not None:
        assert case.repair is not None
        if move.to == CaseState.DRAINED:
            assert case.repair.ends_at_deadline, "a person is waited for"
            assert case.repair.deadline <= NOON
            return
        assert case.repair.kind == RepairKind.REBOOT
        assert case.is_ready
        assert "" not in (case.boot_id, case.repair.boot_id)
        assert case.boot_id != case.repair.boot_id


@given(FACTS, LATER)
def test_a_return_without_a_validation_stays_visible(case: CaseFacts, later: timedelta):
    """lifecycle R39: until it is validated."""
    case = replace(case, state=CaseState.PROBATION, overridden_at=NOON, passed_at=None, gone="", fault="", is_seen=True)

    assert next_case_move(case, now=NOON + later) is None
    assert case.obstacle.startswith("Returned without a validation.")


@given(FACTS)
def test_every_open_case_says_what_happens_next(case: CaseFacts):
    acts = acts_of(case)

    assert case.is_busy or case.is_followed or case.state in FINAL or acts
    assert NEXT[case.state]
    if case.is_busy or case.is_followed or case.state in FINAL:
        assert not acts


def test_every_act_is_a_command_or_an_operation():
    from maintenance.web.case_page import COMMANDS

    assert {act.key for act in ACTS.values() if not act.operation} == set(COMMANDS)
    assert {act.operation for act in ACTS.values() if act.operation} <= set(KINDS)


IN_BREAKFIX = {"cancel-breakfix": ""}


def test_a_release_that_waits_for_a_validation_leaves_that_act_to_people():
    release = NodeOperation(7, "release", NodeProgress.PENDING, False, "ada", "Back.", "No validation has passed.")
    case = CaseFacts(CaseState.DRAINED, NOON, "gpu-1", is_seen=True, has_quarantine=True, newest=release)

    assert [act.key for act in acts_of(case)] == ["validate", "override"]
    assert acts_of(replace(case, passed_at=NOON)) == []
    in_breakfix = replace(case, passed_at=NOON, offers=IN_BREAKFIX)
    assert [act.key for act in acts_of(in_breakfix)] == ["cancel-breakfix"], "the release waits for NVSentinel"


@pytest.mark.parametrize("state", sorted(set(CaseState) - FINAL - {CaseState.PROBATION}))
def test_a_case_offers_to_cancel_nvsentinels_break_fix_where_there_is_one(state: CaseState):
    case = CaseFacts(state, NOON, "gpu-1", offers=IN_BREAKFIX, has_quarantine=True)
    assert "cancel-breakfix" in [act.key for act in acts_of(case)]
    elsewhere = replace(case, offers={"cancel-breakfix": "NVSentinel does not quarantine the node."})
    assert "cancel-breakfix" not in [act.key for act in acts_of(elsewhere)]
    assert why_not("cancel-breakfix", elsewhere) == "NVSentinel does not quarantine the node."


def test_a_case_offers_to_collect_logs_until_the_node_is_back_and_not_while_it_is_released():
    drained = CaseFacts(CaseState.DRAINED, NOON, "gpu-1", has_quarantine=True, passed_at=NOON, offers={"logs": ""})
    assert "logs" in [act.key for act in acts_of(drained)]
    assert "logs" not in [act.key for act in acts_of(replace(drained, state=CaseState.PROBATION))]
    release = NodeOperation(7, "release", NodeProgress.PENDING, False, "ada", "Back.", "")
    assert acts_of(replace(drained, newest=release)) == []


@pytest.mark.parametrize("progress", [NodeProgress.DONE, NodeProgress.FAILED, NodeProgress.CANCELLED])
def test_a_case_does_not_stay_in_a_drain_that_another_operation_followed(progress: NodeProgress):
    """Somebody quarantined the node again before a round saw the end of the drain: people may drain it again."""
    again = NodeOperation(8, "quarantine", progress, False, "bob", "Xid 79.", "Cordoned.")
    move = next_case_move(CaseFacts(CaseState.DRAINING, NOON, "gpu-1", has_quarantine=True, begun=again), now=NOON)

    assert move is not None
    assert move.to == CaseState.QUARANTINED


def test_a_case_whose_finding_is_still_open_does_not_ask_for_a_release():
    case = CaseFacts(CaseState.DRAINED, NOON, "gpu-1", has_quarantine=True, passed_at=NOON)
    assert case.next_step == "The node may return. Release it."
    still = "The finding that opened the case is still open. Look at it before you release the node."
    assert replace(case, is_fault_open=True).next_step == still


def test_the_sentence_and_the_buttons_of_a_case_that_its_next_round_moves_are_of_one_moment():
    held = CaseFacts(CaseState.SUSPECT, NOON, "gpu-1", has_quarantine=True, is_quarantined=True)
    follows = "The state changes within seconds to:"
    assert (held.next_step, acts_of(held)) == (f"{follows} quarantined.", [])
    assert replace(held, is_quarantined=False).next_step == NEXT[CaseState.SUSPECT]

    drain = NodeOperation(8, "drain", NodeProgress.DONE, False, "bob", "Xid 79.", "Drained.")
    for state, to in [("suspect", "quarantined"), ("draining", "drained"), ("quarantined", "drained")]:
        past = replace(held, state=CaseState(state), begun=drain, newest=drain)
        assert (past.next_step, acts_of(past)) == (f"The drain has ended. {follows} {to}.", [])
        assert [act.key for act in acts_of(replace(past, is_automatic=True))] == ["take-over"]
    running = replace(drain, progress=NodeProgress.RUNNING, is_evicting=True)
    draining = replace(held, state=CaseState.DRAINING, begun=running, newest=running)
    assert (draining.next_step, acts_of(draining)) == (NEXT[CaseState.DRAINING], [])

    release = replace(drain, kind="release")
    released = CaseFacts(CaseState.VALIDATING, NOON, "gpu-1", begun=release, newest=release, passed_at=NOON)
    said = f"The release has ended. {follows} back in service, on probation."
    assert (released.next_step, acts_of(released)) == (said, [])
    tested = CaseFacts(CaseState.DRAINED, NOON, "gpu-1", has_quarantine=True, test=A_PASS)
    said = "The test has ended. The case takes its result within seconds."
    assert (tested.next_step, acts_of(tested)) == (said, [])


def test_a_reboot_that_is_not_proven_is_not_asked_of_a_person_again():
    repair = RepairFacts(RepairKind.REBOOT, "done", "ada", NOON, "x", CaseState.DRAINED, waiting="A person repairs it.")
    case = CaseFacts(CaseState.IN_REPAIR, NOON, "gpu-1", boot_id="x", repair=repair)
    assert case.next_step == "The case continues by itself once the node has booted and is Ready."


def test_a_chosen_step_that_waits_says_until_when():
    chosen = ChosenAfterRepair("bea", releases=True, has_ended=False, says="A freeze.", until="12:00 UTC")
    case = CaseFacts(CaseState.VALIDATING, NOON, "gpu-1", has_quarantine=True, passed_at=NOON, chosen=chosen)
    assert case.obstacle == "The release waits, at most until 12:00 UTC: A freeze."
    assert case.next_step == "The node is released then, as bea chose."
    assert replace(case, passed_at=None).obstacle == "The test waits, at most until 12:00 UTC: A freeze."
