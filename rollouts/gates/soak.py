"""All other gates have passed without interruption for long enough."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar

from rollouts.gates.base import Evidence, Gate, GateResult, When, passed, wait
from wording.durations import spell
from wording.instants import moment
from wording.lists import names


@dataclass(frozen=True)
class Soak(Gate):
    duration: timedelta = timedelta(minutes=30)

    key: ClassVar[str] = "soak"
    title: ClassVar[str] = "Soak"
    when: ClassVar[When] = When.THROUGH

    def evaluate(self, evidence: Evidence, *, now: datetime) -> GateResult:
        """Returns the result. Gate, stage and plan all count down to `until`."""
        needed = {"needed_s": self.duration.total_seconds()}
        if off := evidence.exclusions:
            who = sorted({controller for those in off.values() for controller in those})
            sentence = f"The clock starts when what keeps {names(who)} off {names(list(off))} is put back."
            return wait(sentence, cause="exclusions", nodes=tuple(off), measured=needed)
        since, others = evidence.others_passing_since, _others(evidence)
        if since is None:
            return wait(f"The clock starts when every {others} passes.", cause="not-begun", measured=needed)
        until = since + self.duration
        measured = {**needed, "since": since.isoformat(), "until": until.isoformat()}
        if now < until:
            sentence = f"Every {others} has to pass until {moment(until, now=now)}, for {spell(self.duration)} in all."
            return wait(sentence, cause="running", measured=measured)
        return passed(
            f"Every {others} has passed since {moment(since, now=now)}, for the {spell(self.duration)} asked.",
            measured=measured,
        )


def _others(evidence: Evidence) -> str:
    """Returns the gates that the soak waits for, without gates that do not count."""
    return f"other gate but {names(evidence.others_uncounted)}" if evidence.others_uncounted else "other gate"
