"""Everything else has passed, without a break, for long enough."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar

from rollouts.gates.base import Evidence, Verdict, When, hold, passed, spell


@dataclass(frozen=True)
class Soak:
    duration: timedelta = timedelta(minutes=30)

    key: ClassVar[str] = "soak"
    title: ClassVar[str] = "Soak"
    when: ClassVar[When] = When.THROUGH

    def judge(self, evidence: Evidence, *, now: datetime) -> Verdict:
        needed = {"needed_s": self.duration.total_seconds()}
        if evidence.others_passing_since is None:
            return hold("The clock starts when every other gate passes.", measured={"soaked_s": 0, **needed})
        soaked = now - evidence.others_passing_since
        measured = {"soaked_s": soaked.total_seconds(), **needed}
        if soaked < self.duration:
            return hold(f"{spell(self.duration - soaked)} of {spell(self.duration)} to go.", measured=measured)
        return passed(f"Every other gate has passed for {spell(soaked)}.", measured=measured)
