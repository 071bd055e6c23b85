"""The next automatic step of a case: drain, repair, test or release its node, or hand it to a person. Pure.

The repairs follow NVIDIA's catalogue of Xids (docs.nvidia.com/deploy/xid-errors). A reboot also resets the GPUs.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from maintenance.lifecycle import FINAL, CaseFacts, CaseState, RepairAnswer, RepairKind
from maintenance.triggers import SAME_CAUSE_WITHIN
from operations.lifecycle import NodeProgress
from wording.instants import to_the_minute
from wording.numbers import count

REBOOT, RESET = RepairKind.REBOOT, RepairKind.GPU_RESET
# By trigger: the repairs of one case, in order. Without one, a person repairs the node.
REPAIRS: Mapping[str, Sequence[RepairKind]] = {
    "off-the-bus": (REBOOT, REBOOT),  # never a GPU reset
    "gpu-lost": (REBOOT, REBOOT),
    "needs-reset": (REBOOT, REBOOT),
    "remap-failed": (RESET,),  # if it fails again, the GPU is replaced
    "memory": (RESET,),
    "gsp": (RESET, REBOOT),
    "nvlink": (),  # both ends have to be judged
    "detector": (),
    "flapping": (),
}
DRAINED_AFTER = SAME_CAUSE_WITHIN  # since the cordon: a common cause shows first, and opens the breaker
MOST_TESTS = 2  # after a repair: an unknown result is asked for once more
LONGEST_WAIT = timedelta(hours=2)  # for a resolved finding, a Ready node or all of its GPUs after the repair
OFFENDS_WITHIN = timedelta(days=7)  # of an earlier repair: the node needs other hardware, not another reboot


class AutomaticStep(StrEnum):
    WAIT = "wait"
    DRAIN = "drain"
    REPAIR = "repair"
    TEST = "test"
    RELEASE = "release"
    HAND_OVER = "hand-over"


@dataclass(frozen=True)
class AutomaticFacts:
    """The facts of an automatic case beside those of every case."""

    machine: str  # the name of the automatic actor
    trigger: str  # key of the trigger
    why_off: str  # why nothing more is automatic, such as a switch; blank: the drain is
    through: str  # key of the actor of repairs; blank: repairs are not automatic
    able: Collection[RepairKind]  # repairs that this actor does
    why_blocked: str  # why the breaker blocks acts; blank: it does not
    answers: Sequence[str]  # of the earlier repairs of the case, the oldest first
    asked_by: str  # a person who asked for a repair; blank: nobody did
    overridden_by: str  # a person who allowed the return without a validation
    tests: int  # that were started automatically since the last repair
    repaired_before: str  # another case of the node that was repaired lately; blank: none


@dataclass(frozen=True)
class StepChoice:
    step: AutomaticStep
    reason: str  # for a wait: its condition; for a hand-over: the reason
    kind: RepairKind | None = None  # of a repair
    to: str = ""  # person of a hand-over; blank: the person on call
    is_cancelling: bool = False  # a hand-over cancels the automatic drain, which has not begun on the node


def repair_kind(trigger: str, attempt: int, able: Collection[RepairKind]) -> RepairKind | None:
    """Returns the repair that an actor is asked for, from attempt 0. None: a person repairs the node."""
    planned = REPAIRS.get(trigger, ())
    if attempt >= len(planned):
        return None
    if planned[attempt] in able:
        return planned[attempt]
    return RepairKind.REBOOT if planned[attempt] == RepairKind.GPU_RESET and RepairKind.REBOOT in able else None


def choose_step(case: CaseFacts, its: AutomaticFacts, *, now: datetime) -> StepChoice:
    """Returns the next step. It never ends pods for a fault that is over, and never returns a node unvalidated."""
    if ended := _end_by_people(case, its):
        return ended
    if case.gone or not case.is_seen:
        return wait_for("The node is not seen in its cluster.")
    if case.is_busy or case.test is not None:
        return _beside_operation(case)
    if case.is_uncordoned:
        return hand_over("Somebody else uncordoned the node.")
    match case.state:
        case CaseState.SUSPECT:
            is_cordoned = case.has_quarantine or case.is_quarantined
            return wait_for("The cordon is recorded next.") if is_cordoned else hand_over(_result(case))
        case CaseState.QUARANTINED:
            return _from_quarantined(case, its, now=now)
        case CaseState.DRAINED:
            return _from_drained(case, its)
        case CaseState.VALIDATING:
            return _from_validating(case, its, now=now)
        case CaseState.DRAIN_BLOCKED:
            return hand_over(_result(case))
    return wait_for("The case continues by itself.")


def _beside_operation(case: CaseFacts) -> StepChoice:
    """Waits for the operation. A drain that has not begun, such as behind another controller, ends with its fault."""
    newest = case.newest
    is_waiting = newest is not None and newest.kind == "drain" and newest.progress == NodeProgress.PENDING
    if not is_waiting or case.state != CaseState.QUARANTINED or case.is_fault_open:
        return wait_for("An operation is in progress.")
    reason = "The finding is resolved, and the drain has not begun. It would end pods for a fault that is over."
    return replace(hand_over(reason), is_cancelling=True)


def _end_by_people(case: CaseFacts, its: AutomaticFacts) -> StepChoice | None:
    """Returns the end of the automatic steps: the case is over, a person acts on the node, or they are off."""
    if case.state in FINAL or case.state == CaseState.PROBATION:
        return wait_for("The case is over.")
    newest = case.newest
    if newest is not None and newest.actor != its.machine:
        return hand_over(f"{newest.actor} started a {newest.kind}.", to=newest.actor)
    if its.asked_by:
        return hand_over(f"{its.asked_by} requested a repair.", to=its.asked_by)
    if its.overridden_by:
        return hand_over(f"{its.overridden_by} allowed a return without a validation.", to=its.overridden_by)
    if newest is not None and newest.progress == NodeProgress.CANCELLED:
        return hand_over(f"The {newest.kind} was cancelled.")
    return hand_over(its.why_off) if its.why_off else None


def _from_quarantined(case: CaseFacts, its: AutomaticFacts, *, now: datetime) -> StepChoice:
    if case.newest is not None and case.newest.kind == "drain":
        has_failed = case.newest.progress == NodeProgress.FAILED and not case.newest.is_evicting
        return hand_over(_result(case)) if has_failed else wait_for("The result of the drain is recorded next.")
    if not case.is_fault_open:
        return hand_over("The finding is resolved. A drain would end pods for a fault that is over.")
    if not case.is_ready:
        return hand_over("The node is not Ready: its kubelet cannot end pods.")
    if its.why_blocked:
        return hand_over(its.why_blocked)
    if now < (at := case.since + DRAINED_AFTER):
        return wait_for(f"Drain at {to_the_minute(at)}, unless other nodes show the same cause.")
    return StepChoice(AutomaticStep.DRAIN, "The fault is still there.")


def _from_drained(case: CaseFacts, its: AutomaticFacts) -> StepChoice:
    if not its.through:
        return hand_over("The node is drained. Repairs are not automatic in its pool.")
    if its.answers and its.answers[-1] != RepairAnswer.DONE:
        return hand_over(f"The repair was {its.answers[-1] or 'not answered'}. It is not repeated automatically.")
    has_failed = case.failed_at is not None and (case.repaired_at is None or case.failed_at > case.repaired_at)
    if not case.is_fault_open and not has_failed:
        return _test(case, its)
    kind = repair_kind(its.trigger, len(its.answers), its.able)
    if kind is None and its.answers:
        return hand_over(f"{count(len(its.answers), 'repair')} did not mend the node.")
    if kind is None:
        return hand_over("No automatic repair mends this fault with the actor of the pool.")
    if its.repaired_before:
        return hand_over(its.repaired_before)
    if its.why_blocked:
        return hand_over(its.why_blocked)
    return StepChoice(AutomaticStep.REPAIR, "The fault is still there.", kind=kind)


def _from_validating(case: CaseFacts, its: AutomaticFacts, *, now: datetime) -> StepChoice:
    is_late = now - case.since > LONGEST_WAIT
    if not case.is_ready:
        return hand_over("The node is not Ready.") if is_late else wait_for("The node is not Ready yet.")
    if case.why_unvalidated:
        choice = _test(case, its)
        is_too_early = bool(case.lacks) and not is_late and choice.step == AutomaticStep.TEST
        return wait_for(case.lacks) if is_too_early else choice
    if case.newest is not None and case.newest.kind == "release":
        return hand_over(_result(case)) if case.newest.progress == NodeProgress.FAILED else wait_for("It is released.")
    if case.is_fault_open:
        still = "The test passed, and the finding is still open."
        return hand_over(still) if is_late else wait_for(f"{still} The release waits for it.")
    return StepChoice(AutomaticStep.RELEASE, "A test passed after the repair, and the finding is resolved.")


def _test(case: CaseFacts, its: AutomaticFacts) -> StepChoice:
    if not its.through:
        return hand_over("Repairs are not automatic in the pool any more.")
    if not case.is_ready:
        return hand_over("The node is not Ready: no test starts there.")
    if its.tests >= MOST_TESTS:
        return hand_over(f"{count(its.tests, 'test')} did not pass. {case.why_unvalidated}")
    return StepChoice(AutomaticStep.TEST, "No test has passed since the last fault and repair.")


def _result(case: CaseFacts) -> str:
    return (case.newest.result if case.newest else "") or "The node is not quarantined any more."


def wait_for(reason: str) -> StepChoice:
    return StepChoice(AutomaticStep.WAIT, reason)


def hand_over(reason: str, *, to: str = "") -> StepChoice:
    return StepChoice(AutomaticStep.HAND_OVER, reason, to=to)
