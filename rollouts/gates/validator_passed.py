"""The operator's validator has run on every changed node since the change and has completed each step.

It tests what tenants will use: driver, toolkit, CUDA and device plugin. An older run proves nothing, even if its pod is
Ready. The operator itself leaves `upgrade-failed` without another run (nvidia.md 2.2).
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar

from rollouts.gates.base import TO_COME, Evidence, Gate, GateResult, TargetEvidence, When, fail, passed, share, wait
from wording.lists import names
from wording.numbers import either, every

OPERAND = "Validator"


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
        measured = {
            "validated": len(new) - len(unready),
            "failed": len(failed),
            "not run since": len(seen) - len(new),
            "of": len(evidence.counted),
        }
        if failed:
            nodes = tuple(target.name for target in failed)
            others = f" It fails on {names(nodes)}." if failed[1:] else ""
            return fail(f"{_what_fails(failed[0])}.{others}", cause=_step(failed[0]), nodes=nodes, measured=measured)
        if without := tuple(t.name for t in seen if t.validator is None and not _had_one(t)):
            sentence = f"No validator runs on {names(without)}, and none was Ready there before the change."
            return wait(sentence, cause="none", nodes=without, measured=measured, is_final=True)
        if old := tuple(target.name for target in seen if not has_run_since(target)):
            runs = either(len(old), "its run is", "their runs are")
            sentence = f"The validator has not run on {names(old)} since the change: {runs} from before, or gone."
            return wait(sentence, cause="old", nodes=old, measured=measured)
        if unready:
            nodes = tuple(target.name for target in unready)
            more = f" ({len(unready)} nodes in all)" if unready[1:] else ""
            sentence = f"{unready[0].name}: the validator is at {_step(unready[0])}{more}."
            return wait(sentence, cause="running", nodes=nodes, measured=measured)
        if evidence.not_changed:
            to_come = f"{share(len(new), len(evidence.counted))} validated."
            return wait(to_come, cause=TO_COME, measured=measured)
        return passed(f"The validator has passed on {every(len(new), 'node')} since the change.", measured=measured)

    def _has_failed(self, target: TargetEvidence, now: datetime) -> bool:
        pod = target.validator
        return pod is not None and (pod.restarts > self.max_restarts or now - pod.started_at > self.timeout)


def has_run_since(target: TargetEvidence) -> bool:
    """Returns whether the validator's pod is a new one that began after the present driver pod."""
    pod, baseline = target.validator, target.baseline
    if pod is None or target.driver_started_at is None or pod.started_at < target.driver_started_at:
        return False
    return baseline is None or not baseline.validator_uid or pod.uid != baseline.validator_uid


def _had_one(target: TargetEvidence) -> bool:
    return target.baseline is None or OPERAND in target.baseline.operands


def _what_fails(target: TargetEvidence) -> str:
    pod = target.validator
    said = [part for part in (pod.reason or pod.status, pod.last_words) if part] if pod else []
    why = ": ".join(said) or "and nothing says why"
    return f"{target.name}: the validator fails at {_step(target)} ({why})"


def _step(target: TargetEvidence) -> str:
    """Returns the init container or container that waits or crashed."""
    return (target.validator.step if target.validator else "") or "its own container"
