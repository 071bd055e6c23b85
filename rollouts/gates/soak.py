"""All other gates have passed without interruption for long enough."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar

from rollouts.gates.base import Evidence, Gate, GateResult, When
from rollouts.gates.results import passed, subject, wait
from wording.durations import spell
from wording.instants import moment
from wording.lists import names
from wording.reports import EvidenceItem

UNTIL = "Until"  # the label of the soak's end


@dataclass(frozen=True)
class Soak(Gate):
    duration: timedelta = timedelta(minutes=30)

    key: ClassVar[str] = "soak"
    title: ClassVar[str] = "Soak"
    when: ClassVar[When] = When.THROUGH

    def evaluate(self, evidence: Evidence, *, now: datetime) -> GateResult:
        """Returns the result. Gate, stage and plan all count down to `until`."""
        needed = EvidenceItem("Duration", self.duration.total_seconds(), "s")
        if off := evidence.exclusions:
            who = sorted({controller for controllers in off.values() for controller in controllers})
            summary = f"{names(who)} must be allowed on {subject(tuple(off))} again."
            return wait("The soak has not begun", summary, cause="opted-out", nodes=tuple(off), evidence=(needed,))
        since, others = evidence.others_passing_since, _awaited_gates(evidence)
        if since is None:
            return wait(
                "The soak has not begun",
                f"It begins when every {others} passes.",
                cause="not-begun",
                evidence=(needed,),
            )
        until = since + self.duration
        clock = (needed, EvidenceItem("Since", since.isoformat(), "UTC"), EvidenceItem(UNTIL, until.isoformat(), "UTC"))
        if now < until:
            title = f"Soak ends at {moment(until, now=now)}"
            return wait(title, f"Every {others} must pass until then.", cause="running", evidence=clock)
        title = f"Soak of {spell(self.duration)} is complete"
        return passed(title, f"Every {others} has passed since {moment(since, now=now)}.", evidence=clock)


def _awaited_gates(evidence: Evidence) -> str:
    """Returns the gates that the soak waits for, without gates that do not count."""
    return f"other gate but {names(evidence.others_uncounted)}" if evidence.others_uncounted else "other gate"
