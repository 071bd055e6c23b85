"""The answer to one question of a live check. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

from rollouts.checks import Check
from rollouts.preflight.live_checks.facts import NoAnswer


class LiveResult(StrEnum):
    PASSED = "passed"
    WARNED = "warned"  # the plan goes without it
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
        kept = {each.name: getattr(self.check, each.name) for each in fields(Check)}
        return {"result": self.result.value, **kept, "about": list(self.check.about)}

    @classmethod
    def of(cls, written: Mapping[str, Any]) -> "LiveAnswer":
        rest = {
            each.name: written[each.name] for each in fields(Check) if each.name not in {"sentence", "fix", "about"}
        }
        check = Check(sentence=written["sentence"], fix=written["fix"], about=tuple(written["about"]), **rest)
        return cls(LiveResult(written["result"]), check)


def passed(check: Check) -> LiveAnswer:
    return LiveAnswer(LiveResult.PASSED, check)


def barred(check: Check) -> LiveAnswer:
    return LiveAnswer(LiveResult.BARRED, check)


def unanswered(whether: str, answer: NoAnswer | None) -> LiveAnswer:
    """Returns an answer for what is unknown, such as “whether the namespace is there”."""
    given = answer or NoAnswer("It was not asked.")
    fix = (
        "Who starts it all the same says why; whoever runs that webhook may declare its sideEffects as None."
        if given.may_be_overridden
        else "Put that right, or wait, and ask again."
    )
    sentence = f"Nobody knows {whether}. {given.reason}"
    check = Check("live-unanswered", sentence, fix, may_be_overridden=given.may_be_overridden)
    return LiveAnswer(LiveResult.UNANSWERED, check, given.is_for_good)


def barring(answers: Sequence[LiveAnswer], *, is_overridden: bool) -> list[Check]:
    """Returns the blockers. `is_overridden` means that a person starts the plan despite them, with a reason."""
    return [one.check for one in answers if one.bars and not (is_overridden and one.check.may_be_overridden)]
