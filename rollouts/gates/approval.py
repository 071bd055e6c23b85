"""A person, and never the one who asks, lets this stage go."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar

from rollouts.gates.base import Evidence, Gate, Judgement, When, fail, passed, wait
from wording.numbers import count


@dataclass(frozen=True)
class ApprovalGate(Gate):
    needed: int = 1  # different people
    valid_for: timedelta = timedelta(hours=8)  # a night, not a week: the fleet moves on

    key: ClassVar[str] = "approval"
    title: ClassVar[str] = "Approval"
    when: ClassVar[When] = When.ENTRY

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.needed < 1:
            raise ValueError("needed must be at least 1: an approval that nobody gives is none.")
        if self.advisory:
            raise ValueError("it can never be advisory: an approval that does not count is none.")
        if self.patience is not None:
            raise ValueError("it has no patience of its own: people take the time they take.")

    def judge(self, evidence: Evidence, *, now: datetime) -> Judgement:
        if rejection := next((a for a in evidence.approvals if a.is_rejection), None):
            return fail(
                f"{rejection.by} rejected it: {rejection.because}", cause="rejected", measured={"by": rejection.by}
            )
        valid = [a for a in evidence.approvals if not a.is_by_author and now - a.at <= self.valid_for]
        people = sorted({approval.by for approval in valid})
        measured = {"approved_by": people, "needed": self.needed}
        if len(people) < self.needed:
            given = f"{len(people)} of {count(self.needed, 'approval')} given"
            sentence = f"Waits for a person who did not write the plan: {given}."
            return wait(sentence, cause="not-given", measured=measured)
        return passed(f"Approved by {' and '.join(people)}.", measured=measured)
