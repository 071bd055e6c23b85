"""The answer to one question of a live check. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

from rollouts.checks import Check
from rollouts.preflight.live_checks.facts import NoAnswer
from wording.reports import EvidenceItem, Report, written_report

OF_REPORT = {field.name for field in fields(Report)}
FLAGS = tuple(field for field in fields(Check) if field.name not in OF_REPORT)


class LiveResult(StrEnum):
    PASSED = "passed"
    WARNED = "warned"  # the plan works without it
    BARRED = "barred"
    UNANSWERED = "unanswered"  # nobody knows; it bars as well


BARS = frozenset({LiveResult.BARRED, LiveResult.UNANSWERED})


@dataclass(frozen=True)
class LiveAnswer:
    result: LiveResult
    check: Check
    is_for_good: bool = True  # asked once more at once, it would be the same

    @property
    def bars(self) -> bool:
        return self.result in BARS

    @property
    def written(self) -> dict[str, Any]:
        """Returns the answer as its row stores it."""
        flags = {field.name: getattr(self.check, field.name) for field in FLAGS}
        return {"result": self.result.value, **flags, **written_report(self.check)}

    @classmethod
    def of(cls, written: Mapping[str, Any]) -> "LiveAnswer":
        report = {
            "title": written["title"],
            "summary": written["summary"],
            "evidence": tuple(EvidenceItem(**item) for item in written["evidence"]),
            "steps": tuple(written["steps"]),
        }
        check = Check(**{field.name: written[field.name] for field in FLAGS}, **report)
        return cls(LiveResult(written["result"]), check)


def passed(check: Check) -> LiveAnswer:
    return LiveAnswer(LiveResult.PASSED, check)


def barring_answer(check: Check) -> LiveAnswer:
    return LiveAnswer(LiveResult.BARRED, check)


def unanswered(whether: str, answer: NoAnswer | None, *more: EvidenceItem) -> LiveAnswer:
    """Returns an answer for what is unknown, such as “whether the namespace is there”."""
    given = answer or NoAnswer("The question was not sent.")
    steps = (
        ("Start it with a reason.", "Or ask the owner of that webhook to declare its sideEffects as None.")
        if given.may_be_overridden
        else ("Correct that, or wait, and check again.",)
    )
    check = Check(
        "live-unanswered",
        title=f"It is unknown {whether}",
        summary=given.reason,
        evidence=(EvidenceItem("Answer", given.reason), *more),
        steps=steps,
        may_be_overridden=given.may_be_overridden,
    )
    return LiveAnswer(LiveResult.UNANSWERED, check, given.is_for_good)


def blocking_checks(answers: Sequence[LiveAnswer], *, is_overridden: bool) -> list[Check]:
    """Returns the blockers. `is_overridden` means that a person starts the plan despite them, with a reason."""
    return [one.check for one in answers if one.bars and not (is_overridden and one.check.may_be_overridden)]
