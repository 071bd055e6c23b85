"""The next step of a new node: from its checklist over labels and a test to the first pod. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from maintenance.lifecycle import NEW, CaseFacts, CaseState
from operations.lifecycle import NodeProgress
from wording.numbers import count

MOST_TESTS = 2  # an unknown result is asked for once more
# Lifecycle 5.2: how long a state may last before a person is notified.
LIMITS = {
    CaseState.PROVISIONED: timedelta(minutes=30),
    CaseState.STACK_VALIDATED: timedelta(minutes=10),
    CaseState.LABELLED: timedelta(hours=2),
    CaseState.TESTED: timedelta(hours=4),
}


class GateStep(StrEnum):
    WAIT = "wait"
    MOVE = "move"
    TEST = "test"
    RELEASE = "release"
    RELEASE_UNTESTED = "release-untested"  # already in service
    CLOSE = "close"  # the cordon is somebody else's, and stays
    HAND_OVER = "hand-over"


@dataclass(frozen=True)
class GateFacts:
    """The facts of a new node beside those of its case."""

    lacks: str  # the first answer of the checklist that is not yes; blank: it holds
    unlabelled: str  # labels that its pool requires and the node lacks; blank: none
    tenants: Sequence[str]  # pods of tenants that run there
    tests: int  # that were started since its case began
    needs_person: bool
    has_served: bool = False  # a pod of a tenant had GPUs of the node, and ended
    has_gate: bool = True  # the gate that held the node still exists
    is_untestable: str = ""  # why no test can ever pass; blank: one may
    is_not_free: str = ""  # why no operation may start on the node now; blank: one may


@dataclass(frozen=True)
class GateChoice:
    step: GateStep
    reason: str
    to: CaseState | None = None


def choose_gate_step(case: CaseFacts, gate: GateFacts) -> GateChoice:
    """Returns the next step. A node that serves is never held, and no unknown answer is a pass."""
    choice = _choose(case, gate)
    starts = choice.step in (GateStep.TEST, GateStep.RELEASE, GateStep.RELEASE_UNTESTED)
    return GateChoice(GateStep.WAIT, gate.is_not_free) if starts and gate.is_not_free else choice


def _choose(case: CaseFacts, gate: GateFacts) -> GateChoice:
    return _cordon_step(case) or _node_step(gate) or _next_state(case, gate)


def _cordon_step(case: CaseFacts) -> GateChoice | None:
    """Returns the step of a node whose cordon is not in place. None: it is."""
    if case.state not in NEW:
        return GateChoice(GateStep.HAND_OVER, "The test workload failed, or a person took the node out of service.")
    if case.gone or not case.is_seen:
        return GateChoice(GateStep.WAIT, "The node is not seen in its cluster.")
    if case.is_uncordoned:
        return GateChoice(GateStep.HAND_OVER, "Somebody else uncordoned the node.")
    if case.is_busy or case.test is not None:
        return GateChoice(GateStep.WAIT, "")
    return _after_operation(case)


def _after_operation(case: CaseFacts) -> GateChoice | None:
    newest = case.newest
    if newest is not None and newest.serves and not case.has_quarantine:
        return GateChoice(GateStep.CLOSE, newest.result)
    if newest is not None and newest.progress == NodeProgress.CANCELLED:
        return GateChoice(GateStep.HAND_OVER, f"The {newest.kind} was cancelled.")
    if newest is not None and newest.kind in ("quarantine", "release") and newest.progress == NodeProgress.FAILED:
        return GateChoice(GateStep.HAND_OVER, newest.result)
    if not case.is_unschedulable and not case.has_quarantine:
        return GateChoice(GateStep.HAND_OVER, "Somebody else cordoned the node first, and ended that cordon.")
    if not case.is_unschedulable:
        return GateChoice(GateStep.WAIT, "The node is being cordoned.")
    return None


def _node_step(gate: GateFacts) -> GateChoice | None:
    """Returns the step of a node that cannot go on by itself. None: it can."""
    if gate.tenants:
        first = gate.tenants[0]
        return GateChoice(GateStep.RELEASE_UNTESTED, f"{first} runs there: the node serves already, and is not held.")
    if gate.has_served:
        why = "A pod of a tenant had GPUs of the node: it served before its cordon, and is not held."
        return GateChoice(GateStep.RELEASE_UNTESTED, why)
    if not gate.has_gate:
        why = "The pool that held the node was deleted, so its labels and taints are unknown."
        return GateChoice(GateStep.HAND_OVER, why)
    if gate.is_untestable:
        return GateChoice(GateStep.HAND_OVER, gate.is_untestable)
    return GateChoice(GateStep.WAIT, gate.lacks) if gate.lacks else None


def _next_state(case: CaseFacts, gate: GateFacts) -> GateChoice:
    if case.state == CaseState.PROVISIONED:
        return GateChoice(GateStep.MOVE, "The checklist of the GPU stack holds.", CaseState.STACK_VALIDATED)
    if gate.unlabelled:
        return GateChoice(GateStep.WAIT, gate.unlabelled)
    if case.state == CaseState.STACK_VALIDATED:
        return GateChoice(GateStep.MOVE, "The labels and taints of its pool are there.", CaseState.LABELLED)
    if case.state == CaseState.TESTED and case.why_unvalidated and not case.is_overridden:
        return GateChoice(GateStep.MOVE, case.why_unvalidated, CaseState.LABELLED)
    if case.state == CaseState.LABELLED and not case.is_overridden:
        if gate.tests >= MOST_TESTS:
            why = f"{count(gate.tests, 'test')} without a pass. {case.why_unvalidated}"
            return GateChoice(GateStep.HAND_OVER, why)
        return GateChoice(GateStep.TEST, "The new node needs a pass before its first pod.")
    why = "The test workload passed on all GPUs."
    if case.why_unvalidated:
        why = f"{case.overridden_by} allowed the return without a validation. {case.why_unvalidated}"
    if not case.has_quarantine:
        return GateChoice(GateStep.CLOSE, f"{why} The cordon is not Quarterdeck's, and stays.")
    if gate.needs_person:
        return GateChoice(GateStep.WAIT, f"{why} A person releases it: the pool releases no new node by itself.")
    return GateChoice(GateStep.RELEASE, why)
