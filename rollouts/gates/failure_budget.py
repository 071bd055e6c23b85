"""No more targets are lost than the stage allows."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from rollouts.gates.base import TO_COME, Evidence, Gate, Judgement, When, fail, passed, wait
from rollouts.lifecycle import TargetState
from wording.lists import names
from wording.numbers import are, count


@dataclass(frozen=True)
class FailureBudget(Gate):
    tolerate: int = 0  # targets that may fail; the next one halts the stage

    key: ClassVar[str] = "failure_budget"
    title: ClassVar[str] = "Failure budget"
    when: ClassVar[When] = When.THROUGH

    def judge(self, evidence: Evidence, *, now: datetime) -> Judgement:
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
                f"{names(bad)} failed{_gone(evidence)}: {len(bad)}, where {self.tolerate} would be tolerated.",
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


def _gone(evidence: Evidence) -> str:
    lost = sum(target.is_lost for target in evidence.targets)
    return f" ({count(lost, 'node')} gone after being let go)" if lost else ""
