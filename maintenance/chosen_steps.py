"""The steps after a repair that a person chose with it: a test, and a release after a pass. Pure."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from edges.idempotency import OWN_KEYS
from maintenance.lifecycle import CaseFacts, CaseState
from maintenance.step_choice import LONGEST_WAIT
from operations.lifecycle import NodeProgress


class ChosenStep(StrEnum):
    WAIT = "wait"
    TEST = "test"
    RELEASE = "release"
    END = "end"


@dataclass(frozen=True)
class ChosenFacts:
    """The facts of a choice beside those of its case."""

    releases: bool  # the person chose the release too
    is_newest: bool  # no later repair was asked
    is_mended: bool  # the repair ended as done
    other: str  # an operation that was started beside the choice, since it was made; blank: none was
    is_tested: bool  # the test was started
    is_released: bool  # the release was started
    why_barred: str  # why a person has to decide now, such as a lost right; blank: nothing
    why_held: str  # why the release may not start: a breaker, or an open sign of the fault; blank: it may
    why_blocked: str  # why no operation starts now, such as a freeze; blank: one may


@dataclass(frozen=True)
class ChosenChoice:
    step: ChosenStep
    reason: str  # of a wait or an end; blank: nothing to tell
    needs_person: bool = False  # the end of the choice leaves the next step to a person


def key_of(repair: int, step: ChosenStep) -> str:
    """Returns the key of the operation that is started for the choice made with a repair."""
    return f"{OWN_KEYS}{repair}-{step}"


def choose_chosen_step(case: CaseFacts, its: ChosenFacts, *, now: datetime) -> ChosenChoice:
    """Returns the next step of a choice. Any doubt ends it: a person decides then."""
    if case.state == CaseState.PROBATION and its.is_released:
        return ChosenChoice(ChosenStep.END, "")
    if case.state == CaseState.DRAINED and its.is_tested and case.why_unvalidated:
        return _hand_over(_why_not_tested(case))
    if why := _why_over(case, its):
        return ChosenChoice(ChosenStep.END, why)
    if its.why_barred:
        return _hand_over(its.why_barred)
    if case.is_busy or case.test is not None:
        return ChosenChoice(ChosenStep.WAIT, "")
    if case.why_unvalidated:
        return _test(case, its, now=now)
    if not its.releases:
        return ChosenChoice(ChosenStep.END, "")
    return _release(case, its, now=now)


def _why_over(case: CaseFacts, its: ChosenFacts) -> str:
    """Returns why the choice is over: somebody does other steps. Blank: it is not."""
    if not its.is_mended:
        return "The repair was not done."
    if not its.is_newest:
        return "Another repair was asked."
    if case.is_overridden:
        return f"{case.overridden_by} allowed a return without a validation."
    if its.other:
        return its.other
    return "" if case.state == CaseState.VALIDATING else "The case moved."


def _test(case: CaseFacts, its: ChosenFacts, *, now: datetime) -> ChosenChoice:
    if its.is_tested:
        return _hand_over(_why_not_tested(case))
    if why := its.why_blocked or ("" if case.is_ready else "The node is not Ready yet.") or case.lacks:
        return _wait(case, why, now=now)
    return ChosenChoice(ChosenStep.TEST, "")


def _why_not_tested(case: CaseFacts) -> str:
    """Returns why the test allows no return: it did not pass, or something came after its pass."""
    newest = case.newest
    if case.passed_at is not None and (case.failed_at is None or case.failed_at < case.passed_at):
        return f"The last pass no longer counts. {case.why_unvalidated}"
    is_told = case.state == CaseState.VALIDATING and newest and newest.progress == NodeProgress.FAILED
    return f"The test did not pass. {newest.result if newest and is_told else case.why_unvalidated}"


def _release(case: CaseFacts, its: ChosenFacts, *, now: datetime) -> ChosenChoice:
    newest = case.newest
    if its.is_released and newest and newest.progress in (NodeProgress.FAILED, NodeProgress.CANCELLED):
        return _hand_over(newest.result or "The release was cancelled.")
    if its.is_released:
        return ChosenChoice(ChosenStep.WAIT, "")
    if why := its.why_held or its.why_blocked or ("" if case.is_ready else "The node is not Ready."):
        return _wait(case, why, now=now)
    return ChosenChoice(ChosenStep.RELEASE, "")


def _wait(case: CaseFacts, why: str, *, now: datetime) -> ChosenChoice:
    return _hand_over(why) if now > waits_until(case.since, case.passed_at) else ChosenChoice(ChosenStep.WAIT, why)


def waits_until(since: datetime, passed_at: datetime | None) -> datetime:
    """Returns when a wait ends the choice. `since`: of the state of the case."""
    return max(since, passed_at or since) + LONGEST_WAIT


def _hand_over(reason: str) -> ChosenChoice:
    return ChosenChoice(ChosenStep.END, reason, needs_person=True)
