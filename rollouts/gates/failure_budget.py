"""The stage loses no more targets than it may."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from rollouts.gates.base import TO_COME, Evidence, Gate, GateResult, When, fail, passed, wait
from rollouts.lifecycle import TargetState
from wording.lists import names
from wording.numbers import are, count

MOST_CAUSES = 3  # in one sentence


@dataclass(frozen=True)
class FailureBudget(Gate):
    tolerate: int = 0  # targets that may fail; the next one halts the stage

    key: ClassVar[str] = "failure_budget"
    title: ClassVar[str] = "Failure budget"
    when: ClassVar[When] = When.THROUGH

    def evaluate(self, evidence: Evidence, *, now: datetime) -> GateResult:
        again = evidence.tried_again
        failed = tuple(
            t.name
            for t in evidence.targets
            if t.state is TargetState.FAILED
            or t.is_lost
            or (t.upgrade_state == "upgrade-failed" and t.state is not TargetState.EXCLUDED and t not in again)
        )
        lost = tuple(t.name for t in evidence.changed if t.is_seen and t.is_ready is False and t.name not in failed)
        bad = failed + lost
        measured = {"failed": len(bad), "tolerated": self.tolerate, "changed": len(evidence.changed)}
        if len(bad) > self.tolerate:
            return fail(
                _sentence(evidence, failed, lost),
                cause="over",
                nodes=bad,
                measured=measured,
            )
        used = (
            f"{len(bad)} of {self.tolerate} tolerated failures {are(len(bad))} used"
            if self.tolerate
            else "No node is lost"
        )
        if to_come := [t for t in evidence.not_changed if t.name not in bad]:
            sentence = f"{used}; {count(len(to_come), 'node')} {are(len(to_come))} still to come."
            return wait(sentence, cause=TO_COME, measured=measured)
        return passed(f"{used}.", measured=measured)


def _sentence(evidence: Evidence, failed: Sequence[str], lost: Sequence[str]) -> str:
    """Returns a sentence with each node and its cause of failure. The numbers are in `measured`."""
    reason = {target.name: target.failed_reason for target in evidence.targets}
    by_cause: dict[str, list[str]] = {}
    for name in failed:
        by_cause.setdefault(reason[name], []).append(name)
    said = [f"{names(those)} failed{f': {cause}' if cause else '.'}" for cause, those in by_cause.items()]
    if more := sum(len(those) for those in list(by_cause.values())[MOST_CAUSES:]):
        said[MOST_CAUSES:] = [f"{count(more, 'more node')} failed."]
    if lost:
        said.append(f"{names(lost)} {are(len(lost))} not Ready.")
    return " ".join(said)
