"""The new driver is loaded: read from the node itself, never from the operator's word."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar

from gpu.versions import same
from rollouts.gates.base import TO_COME, Evidence, Gate, Judgement, When, fail, passed, wait
from rollouts.lifecycle import TargetState
from wording.lists import names
from wording.numbers import count, either, every


@dataclass(frozen=True)
class DriverVersion(Gate):
    timeout: timedelta = timedelta(minutes=30)  # how long a node may be on its way before that is a failure

    key: ClassVar[str] = "driver_version"
    title: ClassVar[str] = "Driver version"
    when: ClassVar[When] = When.THROUGH

    def judge(self, evidence: Evidence, *, now: datetime) -> Judgement:
        changed = evidence.changed
        wrong = tuple(t.name for t in changed if t.driver_version and not same(t.driver_version, evidence.to_version))
        if wrong:
            another = f"{names(wrong)} {run(len(wrong))} another driver than {evidence.to_version}."
            return fail(another, cause="another", nodes=wrong)
        late = tuple(
            t.name for t in evidence.counted if t.state is TargetState.CHANGING and now - t.state_since > self.timeout
        )
        if late:
            return fail(f"{names(late)} did not load {evidence.to_version} in time.", cause="late", nodes=late)
        silent = tuple(t.name for t in changed if not t.driver_version)
        if silent:
            return wait(f"Which driver {names(silent)} {run(len(silent))} is not said.", cause="silent", nodes=silent)
        measured = {"changed": len(changed), "of": len(evidence.counted)}
        if len(changed) < len(evidence.counted):
            all_of_them = count(len(evidence.counted), "node")
            sentence = f"{evidence.to_version} runs on {len(changed)} of {all_of_them}."
            return wait(sentence, cause=TO_COME, measured=measured)
        sentence = f"{evidence.to_version} runs on {every(len(changed), 'node')}."
        return passed(sentence, measured=measured)


def run(number: int) -> str:
    return either(number, "runs", "run")
