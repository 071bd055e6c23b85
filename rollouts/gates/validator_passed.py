"""The operator's validator has run on every changed node since the change and has completed each step.

It tests what tenants will use: driver, toolkit, CUDA and device plugin. An older run proves nothing, even if its pod is
Ready. The operator itself leaves `upgrade-failed` without another run (nvidia.md 2.2).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar

from rollouts.gates.base import Evidence, Gate, GateResult, TargetEvidence, When
from rollouts.gates.results import OVERRIDE, fail, passed, sentence_of_first_node, subject, to_come, wait
from wording.numbers import count
from wording.reports import EvidenceItem, first_items

OPERAND = "Validator"
STEPS = ("Read the log of the validator's pod on the node.", "Then roll back, or exclude the node.")


@dataclass(frozen=True)
class ValidatorPassed(Gate):
    timeout: timedelta = timedelta(minutes=10)  # from its start to Ready; the operator gives it as long
    max_restarts: int = 3  # its steps wait for each other, and one may fail while the driver still loads

    key: ClassVar[str] = "validator_passed"
    title: ClassVar[str] = "Validator"
    when: ClassVar[When] = When.THROUGH

    def evaluate(self, evidence: Evidence, *, now: datetime) -> GateResult:
        seen = [target for target in evidence.changed if target.is_seen]
        new = [target for target in seen if has_run_since(target)]
        unready = [target for target in new if target.validator and not target.validator.is_ready]
        failed = [target for target in unready if self._has_failed(target, now)]
        counts = (
            EvidenceItem("Validated nodes", len(new) - len(unready)),
            EvidenceItem("Failed validators", len(failed)),
            EvidenceItem("Not run since the change", len(seen) - len(new)),
            EvidenceItem("Nodes of the stage", len(evidence.counted)),
        )
        if failed:
            nodes = tuple(target.name for target in failed)
            title = f"The validator fails on {subject(nodes)}"
            summary = sentence_of_first_node(nodes, _failing_step(failed[0]))
            items = (*counts, *first_items(item for target in failed for item in _last_output(target)))
            return fail(title, summary, cause=_step(failed[0]), nodes=nodes, evidence=items, steps=STEPS)
        if without := tuple(t.name for t in seen if t.validator is None and not _had_validator(t)):
            title = f"No validator runs on {subject(without)}"
            summary = "None was Ready there before the change."
            return wait(title, summary, cause="none", nodes=without, evidence=counts, steps=OVERRIDE, is_final=True)
        if old := tuple(target.name for target in seen if not has_run_since(target)):
            title = f"The validator has not run on {subject(old)} since the change"
            return wait(title, "An earlier run does not count.", cause="old", nodes=old, evidence=counts)
        if unready:
            nodes = tuple(target.name for target in unready)
            title = f"The validator is running on {subject(nodes)}"
            items = (*counts, *first_items(EvidenceItem(target.name, _step(target)) for target in unready))
            summary = sentence_of_first_node(nodes, f"step {_step(unready[0])} is in progress")
            return wait(title, summary, cause="running", nodes=nodes, evidence=items)
        if evidence.not_changed:
            return to_come(evidence, counts)
        title = f"The validator has passed on {count(len(new), 'changed node')}"
        return passed(title, "Every run began after the change.", evidence=counts)

    def _has_failed(self, target: TargetEvidence, now: datetime) -> bool:
        pod = target.validator
        return pod is not None and (pod.restarts > self.max_restarts or now - pod.started_at > self.timeout)


def has_run_since(target: TargetEvidence) -> bool:
    """Returns whether the validator's pod is a new one that began after the present driver pod."""
    pod, baseline = target.validator, target.baseline
    if pod is None or target.driver_started_at is None or pod.started_at < target.driver_started_at:
        return False
    return baseline is None or not baseline.validator_uid or pod.uid != baseline.validator_uid


def _had_validator(target: TargetEvidence) -> bool:
    return target.baseline is None or OPERAND in target.baseline.operands


def _failing_step(target: TargetEvidence) -> str:
    reason = (target.validator.reason or target.validator.status) if target.validator else ""
    return f"step {_step(target)} fails ({reason})" if reason else f"step {_step(target)} fails"


def _last_output(target: TargetEvidence) -> Iterator[EvidenceItem]:
    yield EvidenceItem(target.name, _failing_step(target))
    if target.validator and target.validator.last_words:
        yield EvidenceItem(f"Last output on {target.name}", target.validator.last_words)


def _step(target: TargetEvidence) -> str:
    """Returns the init container or container that waits or crashed."""
    return (target.validator.step if target.validator else "") or "of the main container"
