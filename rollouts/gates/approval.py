"""A person, and never the one who asks, lets this stage go."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar

from rollouts.gates.base import Evidence, Judgement, When, fail, passed, wait
from wording.numbers import count


@dataclass(frozen=True)
class ApprovalGate:
    needed: int = 1  # different people
    valid_for: timedelta = timedelta(hours=8)  # a night, not a week: the fleet moves on

    key: ClassVar[str] = "approval"
    title: ClassVar[str] = "Approval"
    when: ClassVar[When] = When.ENTRY

    def __post_init__(self) -> None:
        if self.needed < 1:
            raise ValueError("needed must be at least 1: an approval that nobody gives is none.")

    def judge(self, evidence: Evidence, *, now: datetime) -> Judgement:
        if rejection := next((a for a in evidence.approvals if a.is_rejection), None):
            return fail(f"{rejection.by} rejected it: {rejection.because}", measured={"by": rejection.by})
        valid = [a for a in evidence.approvals if not a.is_by_author and now - a.at <= self.valid_for]
        people = sorted({approval.by for approval in valid})
        measured = {"approved_by": people, "needed": self.needed}
        if len(people) < self.needed:
            given = f"{len(people)} of {count(self.needed, 'approval')} given"
            return wait(f"Waits for a person who did not write the plan: {given}.", measured=measured)
        return passed(f"Approved by {' and '.join(people)}.", measured=measured)
