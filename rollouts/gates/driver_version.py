"""The new driver is loaded, as the node itself reports."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar

from gpu.upgrade_controller import UPGRADE_DONE, WAIT_FOR_JOBS
from gpu.versions import same
from rollouts.gates.base import TO_COME, Evidence, Gate, GateResult, TargetEvidence, When, fail, passed, wait
from rollouts.lifecycle import TargetState
from wording.lists import names
from wording.numbers import count, either, every

LOOK_AGAIN = (  # both read it when they start, and gpu-feature-discovery once in a while
    "restart what names it there, the pod of gpu-feature-discovery or the kubelet plugin of the DRA driver, and see "
    "what it names then."
)


@dataclass(frozen=True)
class DriverVersion(Gate):
    timeout: timedelta = timedelta(minutes=30)  # how long a node may be on its way before that is a failure

    key: ClassVar[str] = "driver_version"
    title: ClassVar[str] = "Driver version"
    when: ClassVar[When] = When.THROUGH

    def evaluate(self, evidence: Evidence, *, now: datetime) -> GateResult:
        changed = evidence.changed
        wrong = tuple(t.name for t in changed if t.driver_version and not same(t.driver_version, evidence.to_version))
        if wrong:
            another = f"{names(wrong)} {run(len(wrong))} another driver than {evidence.to_version}."
            return fail(another, cause="another", nodes=wrong)
        changing = [target for target in evidence.counted if target.state is TargetState.CHANGING]
        if late := [target for target in changing if now - target.state_since > self.timeout]:
            return _late(late, evidence.to_version)
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


def _late(late: Sequence[TargetEvidence], version: str) -> GateResult:
    """Returns WAIT for late nodes. Without a timeout of its own the operator waits for jobs for ever (Z14)."""
    nodes = tuple(target.name for target in late)
    sentence = f"{names(nodes)} did not load {version} in time."
    jobs = tuple(target.name for target in late if target.upgrade_state == WAIT_FOR_JOBS)
    if jobs:
        there = f"On {names(jobs)} the operator still waits for pods to end (waitForCompletion)"
        return fail(f"{sentence} {there}: end them, or set its timeoutSeconds.", cause="late-for-jobs", nodes=nodes)
    done = [target for target in late if target.upgrade_state == UPGRADE_DONE and target.driver_version]
    if done:
        there = f"On {names(tuple(target.name for target in done))} the operator is through"
        old = f"{done[0].driver_version} is still named as loaded"
        return fail(f"{sentence} {there}, and {old}: {LOOK_AGAIN}", cause="late-to-name-it", nodes=nodes)
    return fail(sentence, cause="late", nodes=nodes)


def run(number: int) -> str:
    return either(number, "runs", "run")
