"""People other than the author approve the stage: a number of people, and a number from each named group."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import ClassVar

from rollouts.gates.base import REJECTED, Evidence, Gate, GateResult, When
from rollouts.gates.results import fail, passed, wait
from wording.lists import names
from wording.numbers import count
from wording.reports import EvidenceItem

Groups = Mapping[str, int]  # group → how many people of it
MOST_GROUPS, MOST_OF_ONE, LONGEST_GROUP = 10, 20, 63
GROUP = re.compile(r"[\w.+-]{1,63}")  # valid name of a group
GIVEN = "Approvals given"  # the label of the valid approvals that count


@dataclass(frozen=True)
class ApprovalGate(Gate):
    needed: int = 1  # different people
    valid_for: timedelta = timedelta(hours=8)  # a night, not a week: the fleet moves on
    groups: Groups = field(default_factory=dict, hash=False)  # a person counts for one of their groups

    key: ClassVar[str] = "approval"
    title: ClassVar[str] = "Approval"
    when: ClassVar[When] = When.ENTRY

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.needed < 1:
            raise ValueError("needed must be at least 1, so that a person approves.")
        if self.advisory:
            raise ValueError("an approval always counts and cannot be advisory.")
        if self.wait_timeout is not None:
            raise ValueError("an approval has no wait timeout, because people take the time that they need.")
        if len(self.groups) > MOST_GROUPS:
            raise ValueError(f"groups names at most {MOST_GROUPS}.")
        if wrong := [name for name, number in self.groups.items() if not 1 <= number <= MOST_OF_ONE]:
            raise ValueError(f"groups: the number of people of {wrong[0]} must be from 1 to {MOST_OF_ONE}.")

    @property
    def people(self) -> int:
        """Returns how many different people must approve, groups included."""
        return max(self.needed, sum(self.groups.values()))

    def missing(self, people: Mapping[str, Collection[str]]) -> tuple[int, dict[str, int]]:
        """Returns the missing approvals, in total and by group. `people` is person → groups."""
        owed = still_owed(self.groups, people)
        return max(self.people - len(people), sum(owed.values())), owed

    def evaluate(self, evidence: Evidence, *, now: datetime) -> GateResult:
        if rejection := next((a for a in evidence.approvals if a.is_rejection), None):
            return fail(
                f"{rejection.by} rejected the stage",
                f"Reason: {rejection.reason}",
                cause=REJECTED,
                evidence=(EvidenceItem("Rejected by", rejection.by), EvidenceItem("Reason", rejection.reason)),
                steps=("Resolve the reason.", "Then resume the plan: it requests the approval again."),
            )
        valid = {a.by: a.groups for a in evidence.approvals if not a.is_by_author and now - a.at <= self.valid_for}
        missing, owed = self.missing(valid)
        given = (
            EvidenceItem("Approved by", ", ".join(sorted(valid)) or "nobody"),
            EvidenceItem(GIVEN, self.people - missing),
            EvidenceItem("Approvals needed", self.people),
            *(
                EvidenceItem(f"Of group {name}", f"{of - owed.get(name, 0)} of {of}")
                for name, of in _sorted_groups(self)
            ),
        )
        if missing:
            title = f"{self.people - missing} of {count(self.people, 'approval')} given"
            summary = "Authors and editors of the plan cannot approve it."
            steps = ("Approve or reject the stage on its approval page.",)
            return wait(title, summary, cause="not-given", evidence=given, steps=steps)
        title = f"{count(len(valid), 'person', 'people')} approved the stage"
        return passed(title, f"Approved by {names(sorted(valid))}.", evidence=given)


def owes(owed: Groups) -> str:
    """Returns text such as "1 of sre and 2 of platform"."""
    return " and ".join(f"{number} of {group}" for group, number in sorted(owed.items()))


def still_owed(groups: Groups, people: Mapping[str, Collection[str]]) -> dict[str, int]:
    """Returns the smallest number that each group still owes if each person counts for one group."""
    seats = [(group, number) for group, many in sorted(groups.items()) for number in range(many)]
    taken: dict[tuple[str, int], str] = {}  # seat → who sits on it
    for person in sorted(people):
        _seat(person, seats, people, taken, set())
    owed = {group: sum(seat[0] == group and seat not in taken for seat in seats) for group in groups}
    return {group: number for group, number in owed.items() if number}


def _seat(
    person: str,
    seats: list[tuple[str, int]],
    people: Mapping[str, Collection[str]],
    taken: dict[tuple[str, int], str],
    tried: set[tuple[str, int]],
) -> bool:
    """Finds a seat for one more person, and moves seated people to other seats of theirs where needed."""
    for seat in seats:
        if seat[0] in people[person] and seat not in tried:
            tried.add(seat)
            if seat not in taken or _seat(taken[seat], seats, people, taken, tried):
                taken[seat] = person
                return True
    return False


def _sorted_groups(gate: ApprovalGate) -> list[tuple[str, int]]:
    return sorted(gate.groups.items())
