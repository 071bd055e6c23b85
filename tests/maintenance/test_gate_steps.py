"""The next step of a new node: no unknown answer is a pass, and a node that serves is not held."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from maintenance.gate_steps import GateChoice, GateFacts, GateStep, choose_gate_step
from maintenance.lifecycle import CaseFacts, CaseState, NodeOperation, next_case_move
from operations.lifecycle import NodeProgress
from tests.make import NOON

HELD = CaseFacts(
    state=CaseState.PROVISIONED, since=NOON, node_name="gpu-1", is_unschedulable=True, has_quarantine=True,
    is_quarantined=True, fault_at=NOON,
)  # fmt: skip
FINE = GateFacts(lacks="", unlabelled="", tenants=(), tests=0, needs_person=False)
TESTED = "The test workload passed on all GPUs."
OVERRIDDEN = {"state": CaseState.LABELLED, "overridden_at": NOON + timedelta(minutes=1), "overridden_by": "ada"}
PASSED = {"state": CaseState.TESTED, "passed_at": NOON + timedelta(minutes=1)}


def an_operation(kind: str, progress: NodeProgress) -> NodeOperation:
    return NodeOperation(
        1, kind, progress, is_evicting=kind == "drain", actor="x", reason="A reason.", result="A result."
    )


@pytest.mark.parametrize(
    ("case", "gate", "step", "reason"),
    [
        ({}, {}, GateStep.MOVE, "The checklist of the GPU stack holds."),
        ({}, {"lacks": "Driver pod: no."}, GateStep.WAIT, "Driver pod: no."),
        (
            {},
            {"tenants": ["team/web"], "lacks": "x"},
            GateStep.RELEASE_UNTESTED,
            "team/web runs there: the node serves already",
        ),
        ({"is_unschedulable": False, "is_quarantined": False}, {}, GateStep.WAIT, "The node is being cordoned."),
        (
            {"is_unschedulable": False, "is_quarantined": False, "has_quarantine": False},
            {},
            GateStep.HAND_OVER,
            "Somebody else cordoned the node first, and ended that cordon.",
        ),
        ({"is_unschedulable": False}, {}, GateStep.WAIT, "The node is being cordoned."),  # its row is older
        (
            {"is_unschedulable": False, "is_cordon_removed": True},
            {},
            GateStep.HAND_OVER,
            "Somebody else uncordoned the node.",
        ),
        ({"state": CaseState.STACK_VALIDATED}, {"unlabelled": "Labels: a."}, GateStep.WAIT, "Labels: a."),
        ({"state": CaseState.STACK_VALIDATED}, {}, GateStep.MOVE, "The labels and taints of its pool are there."),
        ({"state": CaseState.LABELLED}, {}, GateStep.TEST, "The new node needs a pass"),
        ({"state": CaseState.LABELLED}, {"tests": 2}, GateStep.HAND_OVER, "2 tests without a pass."),
        (PASSED, {}, GateStep.RELEASE, "The test workload passed on all GPUs."),
        (PASSED, {"lacks": "Allocatable above 0: no."}, GateStep.WAIT, "Allocatable above 0: no."),
        (PASSED, {"needs_person": True}, GateStep.WAIT, f"{TESTED} A person releases it"),
        (PASSED | {"fault_at": NOON + timedelta(hours=1)}, {}, GateStep.MOVE, "No validation has passed since"),
        (PASSED | {"has_quarantine": False, "is_quarantined": False}, {}, GateStep.CLOSE, f"{TESTED} The cordon"),
        (OVERRIDDEN, {}, GateStep.RELEASE, "ada allowed the return without a validation. No validation has passed."),
        (OVERRIDDEN, {"needs_person": True}, GateStep.WAIT, "ada allowed the return without a validation."),
        ({}, {"has_gate": False}, GateStep.HAND_OVER, "The pool that held the node was deleted"),
        ({}, {"is_untestable": "Shared."}, GateStep.HAND_OVER, "Shared."),
        ({"state": CaseState.QUARANTINED}, {}, GateStep.HAND_OVER, "The test workload failed"),
        ({"state": CaseState.LABELLED}, {"has_served": True}, GateStep.RELEASE_UNTESTED, "A pod of a tenant had GPUs"),
        ({"state": CaseState.LABELLED}, {"is_not_free": "Frozen."}, GateStep.WAIT, "Frozen."),
        (PASSED, {"is_not_free": "plan-7 changes it."}, GateStep.WAIT, "plan-7 changes it."),
        ({}, {"tenants": ["team/web"], "is_not_free": "Frozen."}, GateStep.WAIT, "Frozen."),
        ({}, {"is_not_free": "Frozen."}, GateStep.MOVE, "The checklist"),  # no operation starts
    ],
)
def test_the_next_step(case: dict[str, Any], gate: dict[str, Any], step: GateStep, reason: str):
    choice = choose_gate_step(replace(HELD, **case), replace(FINE, **gate))
    assert choice.step is step
    assert choice.reason.startswith(reason)


def test_a_step_waits_for_the_operation_before_it():
    running = an_operation("quarantine", NodeProgress.RUNNING)
    assert choose_gate_step(replace(HELD, newest=running), FINE).step is GateStep.WAIT
    failed = an_operation("quarantine", NodeProgress.FAILED)
    assert choose_gate_step(replace(HELD, newest=failed), FINE).step is GateStep.HAND_OVER
    for kind in ("quarantine", "test", "release"):
        cancelled = replace(HELD, newest=an_operation(kind, NodeProgress.CANCELLED), is_unschedulable=False)
        assert choose_gate_step(cancelled, FINE) == GateChoice(GateStep.HAND_OVER, f"The {kind} was cancelled.")
    serves = replace(HELD, newest=replace(failed, serves=True), has_quarantine=False, is_unschedulable=False)
    assert choose_gate_step(serves, FINE).step is GateStep.CLOSE


@pytest.mark.parametrize(
    ("kind", "facts", "to"),
    [
        ("release", {"has_quarantine": False}, CaseState.CLOSED),
        ("accept-uncordon", {"has_quarantine": False}, CaseState.CLOSED),
        ("release", {}, None),  # its cordon is still wanted
        ("quarantine", {}, None),
        ("drain", {}, CaseState.QUARANTINED),
    ],
)
def test_a_new_node_moves_after_the_operations_of_people(kind: str, facts: dict[str, Any], to: CaseState | None):
    case = replace(HELD, begun=an_operation(kind, NodeProgress.DONE), **facts)
    move = next_case_move(case, now=NOON)
    assert (move and move.to) == to


def test_a_new_node_is_not_released_before_a_pass():
    assert HELD.why_no_return == "No validation has passed."
    assert replace(HELD, **PASSED).why_no_return == ""
