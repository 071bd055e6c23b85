"""The refusals of commands. `config.errors` turns them into HTTP answers."""

from collections.abc import Sequence

from rollouts.checks import Check
from wording.reports import written_report


class Refusal(Exception):
    """The command is refused; the sentence says what to do instead."""


class BadPlan(Refusal):
    def __init__(self, *problems: tuple[str, str]) -> None:
        super().__init__(" ".join(sentence for _, sentence in problems))
        self.problems = [{"field": field, "sentence": sentence} for field, sentence in problems]


class BadFreeze(BadPlan):
    """The input is no valid freeze."""


class BadSchedule(BadPlan):
    """The input is no valid maintenance window."""


class OutOfDate(Refusal):
    """The caller decided on a state or revision that is outdated."""


class StaleBundle(OutOfDate):
    """The evidence has changed since the approver saw it."""

    def __init__(self, sentence: str, changed: Sequence[str] = ()) -> None:
        super().__init__(sentence)
        self.changed = list(changed)  # a sentence each


class ObjectGone(Refusal):
    """The object that the plan would change no longer exists."""


class AlreadyDecided(Refusal):
    """The person has a valid decision on this stage."""


class NotYours(Refusal):
    """People cannot approve their own plans."""


class ReasonNeeded(Refusal):
    """The approval needs a reason."""


class Blocked(Refusal):
    def __init__(self, blockers: Sequence[Check]) -> None:
        super().__init__(" ".join(blocker.sentence for blocker in blockers))
        self.blockers = [
            {
                "code": check.code,
                **written_report(check),
                "field": check.field,
                "may_be_overridden": check.may_be_overridden,
            }
            for check in blockers
        ]
