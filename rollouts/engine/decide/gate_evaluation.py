"""Evaluates the gates of a stage, and fails closed in one place. Pure."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple

from rollouts.engine.snapshot import StageSnapshot
from rollouts.gates.base import (
    NEVER_OVERRIDDEN,
    TO_COME,
    UNSEEN,
    UNTIMED_WAITS,
    Answer,
    Gate,
    GateResult,
    Items,
    When,
)
from rollouts.gates.results import no_target, subject, wait
from rollouts.gates.soak import Soak
from rollouts.gates.window import comes_by_itself
from rollouts.lifecycle import StageState, TargetState
from rollouts.node_order.node_selection import bound_in_percent
from wording.durations import spell
from wording.reports import EvidenceItem

RATE = "Failure rate at most (95 % confidence)"


class LastAnswer(NamedTuple):
    """The answer of a gate in the round before."""

    answer: Answer
    cause: str
    since: datetime  # of the same answer with the same cause


def waiting_since(
    gates: Collection[Gate], answers: Mapping[str, LastAnswer], state: StageState, *, now: datetime
) -> dict[str, datetime]:
    """Returns since when each gate waits.

    The time restarts where it did not wait, where nothing could be released, and with the first changed node of a wave.
    """
    counted = (gate.key for gate in gates if gate.key in answers and not gate.advisory)
    is_shut = any(comes_by_itself(key, answers[key].cause) for key in counted)
    unhurried = {gate.key for gate in gates if is_shut and gate.when is When.WAVE}
    untimed = UNTIMED_WAITS | ({TO_COME} if state is StageState.PROMOTING else frozenset())
    unhurried |= {key for key, last in answers.items() if last.cause in untimed}
    return {
        key: last.since if last.answer is Answer.WAIT and key not in unhurried else now for key, last in answers.items()
    }


def evaluate(stage: StageSnapshot, *whens: When, now: datetime) -> dict[str, GateResult]:
    """Returns the result of every gate. A gate that passes although some of its evidence is missing does not pass."""
    return {gate.key: _ask(gate, stage, now=now) for gate in stage.gates if gate.when in whens}


def _ask(gate: Gate, stage: StageSnapshot, *, now: datetime) -> GateResult:
    result = gate.evaluate(stage.evidence, now=now)
    if result.answer is not Answer.PASS or gate.when is not When.THROUGH:
        return result
    if not stage.evidence.counted:
        return no_target()
    unseen = tuple(target.name for target in stage.evidence.counted if not target.is_seen)
    if unseen:
        title = f"{subject(unseen)} cannot be seen"
        return wait(title, "An unknown state is not a pass.", cause=UNSEEN, nodes=unseen)
    return replace(result, evidence=(*result.evidence, *_what_it_shows(stage)))


def _what_it_shows(stage: StageSnapshot) -> Items:
    """Returns the number of nodes behind a pass, and the failure rate that it cannot exclude."""
    failed = sum(target.state is TargetState.FAILED for target in stage.evidence.targets)
    nodes = len(stage.evidence.changed) + failed
    at_most = bound_in_percent(nodes, failed=failed)
    return (EvidenceItem("Nodes (n)", nodes), EvidenceItem("Failures", failed), EvidenceItem(RATE, at_most, "%"))


def counted_results(stage: StageSnapshot, results: Mapping[str, GateResult]) -> dict[str, GateResult]:
    """Returns the results that may halt, hold or pass the stage: without advisory gates and gates under an override."""
    advisory = {gate.key for gate in stage.gates if gate.advisory}
    left = {key: result for key, result in results.items() if key not in advisory}
    return {key: result for key, result in left.items() if not is_overridden(stage, key, result)}


def is_overridden(stage: StageSnapshot, key: str, result: GateResult) -> bool:
    return key in stage.overridden and result.cause not in NEVER_OVERRIDDEN


def exceeded_wait_timeout(stage: StageSnapshot, key: str, *, now: datetime) -> str:
    """Returns for how long a gate has waited, once that exceeds its timeout; empty means it has not.

    The wait begins with the gate's first WAIT, the stage's last change of state, or the last resume, whichever is
    latest.
    """
    wait_timeout = next((gate.wait_timeout for gate in stage.gates if gate.key == key), None) or stage.wait_timeout
    since = max(stage.state_since, stage.waiting_since.get(key, stage.state_since))
    return spell(wait_timeout) if now - since > wait_timeout else ""


def exceeded_soak_limit(stage: StageSnapshot, *, now: datetime) -> str:
    """Returns how long a stage may soak, once it has soaked for longer; empty means it has not.

    Each pass restarts the wait timeout of a gate, and each wait restarts the soak. Gates that pass and wait in turn
    would thus ask nobody. The limit leaves time for the first waits, for the soak and for one interruption: the soak
    and twice the longest wait timeout.
    """
    counted = [gate for gate in stage.gates if gate.when is When.THROUGH and not gate.advisory]
    soak = sum((gate.duration for gate in counted if isinstance(gate, Soak)), timedelta(0))
    limit = soak + 2 * max((gate.wait_timeout or stage.wait_timeout for gate in counted), default=stage.wait_timeout)
    return spell(limit) if now - stage.state_since > limit else ""


def first_result(answer: Answer, results: Mapping[str, GateResult]) -> tuple[str, GateResult] | None:
    return next(((key, result) for key, result in results.items() if result.answer is answer), None)


def all_pass(stage: StageSnapshot, results: Mapping[str, GateResult]) -> bool:
    """Returns whether the stage may pass. A stage without a gate that counts never passes."""
    through = {gate.key for gate in stage.gates if gate.when is When.THROUGH and not gate.advisory}
    asked = all(key in results for key in through)
    return (
        bool(through)
        and asked
        and all(results[key].answer is Answer.PASS or is_overridden(stage, key, results[key]) for key in through)
    )
