"""The next automatic step of a case: pure choices, and what no facts may ever lead to."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maintenance.lifecycle import CaseFacts, CaseState, NodeOperation, RepairKind
from maintenance.step_choice import (
    DRAINED_AFTER,
    LONGEST_WAIT,
    REPAIRS,
    AutomaticFacts,
    AutomaticStep,
    choose_step,
    repair_kind,
)
from maintenance.triggers import TRIGGERS
from operations.lifecycle import NodeProgress
from tests.make import NOON

S = CaseState
HOUR, SECOND = timedelta(hours=1), timedelta(seconds=1)
MACHINE = "automatic quarantine"
BOTH = frozenset({RepairKind.REBOOT, RepairKind.GPU_RESET})


def an_operation(kind: str = "quarantine", progress: NodeProgress = NodeProgress.DONE, actor: str = MACHINE):
    return NodeOperation(1, kind, progress, False, actor, "x", "It said so.")


def facts(state: CaseState, **its: Any) -> CaseFacts:
    row = {"since": NOON - HOUR, "node_name": "gpu-1", "is_fault_open": True, "is_unschedulable": True}
    row |= {"fault_at": NOON - 5 * HOUR, "has_quarantine": True, "is_quarantined": True, "newest": an_operation()}
    return CaseFacts(state=state, **row | its)


def automatic(**its: Any) -> AutomaticFacts:
    row = {"machine": MACHINE, "trigger": "gsp", "why_off": "", "through": "nvsentinel-reboot", "able": BOTH}
    row |= {"why_blocked": "", "answers": [], "asked_by": "", "overridden_by": "", "tests": 0, "repaired_before": ""}
    return AutomaticFacts(**row | its)


PASSED = {"passed_at": NOON, "repaired_at": NOON - SECOND, "is_fault_open": False}
MENDED = {"repaired_at": NOON - SECOND, "is_fault_open": False}


@pytest.mark.parametrize(
    ("case", "its", "step"),
    [
        (facts(S.SUSPECT), {}, AutomaticStep.WAIT),
        (facts(S.SUSPECT, has_quarantine=False, is_quarantined=False), {}, AutomaticStep.HAND_OVER),  # it was refused
        (facts(S.QUARANTINED), {}, AutomaticStep.DRAIN),
        (
            facts(S.QUARANTINED, since=NOON - DRAINED_AFTER + SECOND),
            {},
            AutomaticStep.WAIT,
        ),  # a common cause shows first
        (facts(S.QUARANTINED, is_fault_open=False), {}, AutomaticStep.HAND_OVER),
        (facts(S.QUARANTINED, is_ready=False), {}, AutomaticStep.HAND_OVER),
        (facts(S.QUARANTINED, is_unschedulable=False, is_cordon_removed=True), {}, AutomaticStep.HAND_OVER),
        (facts(S.QUARANTINED), {"why_off": "Off."}, AutomaticStep.HAND_OVER),
        (facts(S.QUARANTINED), {"why_blocked": "Open."}, AutomaticStep.HAND_OVER),
        (facts(S.QUARANTINED, newest=an_operation("drain", actor="ada")), {}, AutomaticStep.HAND_OVER),
        (facts(S.QUARANTINED, newest=an_operation("drain", NodeProgress.CANCELLED)), {}, AutomaticStep.HAND_OVER),
        (facts(S.QUARANTINED, newest=an_operation("drain", NodeProgress.RUNNING)), {}, AutomaticStep.WAIT),
        (facts(S.QUARANTINED, newest=an_operation("drain", NodeProgress.FAILED)), {}, AutomaticStep.HAND_OVER),
        (facts(S.QUARANTINED, newest=an_operation("drain", NodeProgress.PENDING)), {}, AutomaticStep.WAIT),
        (
            facts(S.QUARANTINED, newest=an_operation("drain", NodeProgress.PENDING), is_fault_open=False),
            {},
            AutomaticStep.HAND_OVER,
        ),
        (facts(S.DRAINING), {}, AutomaticStep.WAIT),
        (facts(S.DRAIN_BLOCKED, newest=an_operation("drain", NodeProgress.FAILED)), {}, AutomaticStep.HAND_OVER),
        (facts(S.DRAINED), {}, AutomaticStep.REPAIR),
        (facts(S.DRAINED), {"through": ""}, AutomaticStep.HAND_OVER),
        (facts(S.DRAINED), {"answers": ["unclear"]}, AutomaticStep.HAND_OVER),
        (facts(S.DRAINED), {"answers": ["refused"]}, AutomaticStep.HAND_OVER),
        (facts(S.DRAINED), {"answers": ["done"]}, AutomaticStep.REPAIR),
        (facts(S.DRAINED), {"answers": ["done", "done"]}, AutomaticStep.HAND_OVER),
        (facts(S.DRAINED), {"trigger": "nvlink"}, AutomaticStep.HAND_OVER),
        (facts(S.DRAINED), {"repaired_before": "Case 1."}, AutomaticStep.HAND_OVER),
        (facts(S.DRAINED), {"why_blocked": "Open."}, AutomaticStep.HAND_OVER),
        (facts(S.DRAINED, overridden_at=NOON), {"overridden_by": "ada"}, AutomaticStep.HAND_OVER),
        (facts(S.DRAINED, is_fault_open=False), {}, AutomaticStep.TEST),
        (facts(S.DRAINED, is_fault_open=False, failed_at=NOON), {}, AutomaticStep.REPAIR),
        (facts(S.DRAINED, is_fault_open=False), {"tests": 2}, AutomaticStep.HAND_OVER),
        (facts(S.IN_REPAIR), {}, AutomaticStep.WAIT),
        (facts(S.IN_REPAIR), {"asked_by": "ada"}, AutomaticStep.HAND_OVER),
        (facts(S.VALIDATING, **MENDED), {"answers": ["done"]}, AutomaticStep.TEST),
        (facts(S.VALIDATING, **MENDED), {"tests": 2}, AutomaticStep.HAND_OVER),
        (facts(S.VALIDATING, **MENDED, lacks="7 of 8."), {}, AutomaticStep.WAIT),
        (facts(S.VALIDATING, **MENDED, lacks="7 of 8."), {"tests": 2}, AutomaticStep.HAND_OVER),
        (facts(S.VALIDATING, **MENDED, is_ready=False), {}, AutomaticStep.WAIT),
        (facts(S.VALIDATING, **PASSED), {}, AutomaticStep.RELEASE),
        (
            facts(S.VALIDATING, **PASSED),
            {"why_blocked": "Open."},
            AutomaticStep.RELEASE,
        ),  # a breaker stops no return (R53)
        (facts(S.VALIDATING, **PASSED | {"is_fault_open": True}), {}, AutomaticStep.WAIT),
        (
            facts(S.VALIDATING, **PASSED | {"is_fault_open": True}, since=NOON - 2 * LONGEST_WAIT),
            {},
            AutomaticStep.HAND_OVER,
        ),
        (
            facts(S.VALIDATING, **PASSED, newest=an_operation("release", NodeProgress.FAILED)),
            {},
            AutomaticStep.HAND_OVER,
        ),
        (facts(S.PROBATION, **PASSED), {}, AutomaticStep.WAIT),
        (facts(S.CLOSED), {}, AutomaticStep.WAIT),
    ],
)
def test_each_state_leads_to_one_step(case: CaseFacts, its: dict[str, Any], step: AutomaticStep):
    choice = choose_step(case, automatic(**its), now=NOON)

    assert (choice.step, bool(choice.reason)) == (step, True)


def test_each_trigger_has_its_repairs_and_none_reboots_thrice():
    """lifecycle R7, section 9: a lost GPU is never reset, a failed remap never rebooted twice."""
    assert set(REPAIRS) == {trigger.key for trigger in TRIGGERS}
    assert max(kinds.count(RepairKind.REBOOT) for kinds in map(list, REPAIRS.values())) <= 2
    assert RepairKind.GPU_RESET not in REPAIRS["off-the-bus"]
    assert list(REPAIRS["remap-failed"]).count(RepairKind.REBOOT) == 0
    assert repair_kind("gsp", 0, BOTH) == RepairKind.GPU_RESET
    assert repair_kind("gsp", 0, {RepairKind.REBOOT}) == RepairKind.REBOOT, "a reboot resets the GPUs too"
    assert repair_kind("off-the-bus", 0, {RepairKind.GPU_RESET}) is None


TIMES = st.none() | st.integers(-6, 0).map(lambda hours: NOON + hours * HOUR)
CASES = st.builds(
    facts,
    st.sampled_from(list(S)),
    **dict.fromkeys(("fault_at", "repaired_at", "passed_at", "failed_at", "overridden_at"), TIMES),
    **{name: st.booleans() for name in ("is_fault_open", "is_ready", "is_unschedulable", "has_quarantine")},
    newest=st.builds(
        an_operation,
        st.sampled_from(["quarantine", "drain", "test", "release"]),
        st.sampled_from(list(NodeProgress)),
        st.sampled_from([MACHINE, "ada"]),
    ),
)
ITS = st.builds(
    automatic,
    trigger=st.sampled_from(sorted(REPAIRS)),
    why_off=st.sampled_from(["", "Off."]),
    why_blocked=st.sampled_from(["", "Open."]),
    answers=st.lists(st.sampled_from(["done", "refused", "unclear"]), max_size=3),
    able=st.sampled_from([frozenset(), BOTH, {RepairKind.REBOOT}]),
    tests=st.integers(0, 3),
    overridden_by=st.sampled_from(["", "ada"]),
)


@given(CASES, ITS)
def test_no_facts_lead_past_a_switch_a_breaker_a_person_or_a_validation(case: CaseFacts, its: AutomaticFacts):
    step = choose_step(case, its, now=NOON).step
    is_act = step in (AutomaticStep.DRAIN, AutomaticStep.REPAIR, AutomaticStep.TEST, AutomaticStep.RELEASE)

    assert not (is_act and (its.why_off or its.overridden_by or case.is_busy))
    assert not (is_act and case.newest and case.newest.actor != MACHINE)
    assert not (step in (AutomaticStep.DRAIN, AutomaticStep.REPAIR) and its.why_blocked)
    assert not (step == AutomaticStep.RELEASE and (case.why_unvalidated or case.is_fault_open or not case.is_ready))
    assert not (
        step == AutomaticStep.REPAIR and (case.state != S.DRAINED or {"unclear", "refused"} & set(its.answers[-1:]))
    )
    assert not (step == AutomaticStep.DRAIN and (case.state != S.QUARANTINED or not case.is_fault_open))
    if step == AutomaticStep.RELEASE:  # a fault or repair after the pass takes the release away
        later = replace(case, fault_at=NOON + HOUR)
        assert choose_step(later, its, now=NOON + 2 * HOUR).step != AutomaticStep.RELEASE
