"""What the domain says no to. `config.errors` turns these into answers, once."""

from collections.abc import Sequence

from rollouts.checks import Check


class Refusal(Exception):
    """Not now, or not like this. The sentence says what to do instead."""


class BadPlan(Refusal):
    """What was written down makes no plan."""

    def __init__(self, *problems: tuple[str, str]) -> None:
        super().__init__(" ".join(sentence for _, sentence in problems))
        self.problems = [{"field": field, "sentence": sentence} for field, sentence in problems]


class BadFreeze(BadPlan):
    """What was written down makes no freeze."""


class BadSchedule(BadPlan):
    """What was written down makes no maintenance window."""


class OutOfDate(Refusal):
    """The caller decided on a state or revision that is no more."""


class StaleBundle(OutOfDate):
    """What the approver saw is not what stands there now."""

    def __init__(self, sentence: str, changed: Sequence[str] = ()) -> None:
        super().__init__(sentence)
        self.changed = list(changed)  # a sentence each


class ObjectGone(Refusal):
    """The cluster no longer shows what the plan would change."""


class AlreadyDecided(Refusal):
    """This person has a standing decision on this stage."""


class NotYours(Refusal):
    """Nobody approves what is their own."""


class ReasonNeeded(Refusal):
    """Nobody approves this without saying why."""


class Blocked(Refusal):
    """The plan cannot start as things are."""

    def __init__(self, blockers: Sequence[Check]) -> None:
        super().__init__(" ".join(blocker.sentence for blocker in blockers))
        self.blockers = [
            {
                "code": check.code,
                "sentence": check.sentence,
                "fix": check.fix,
                "field": check.field,
                "may_be_overridden": check.may_be_overridden,
                "about": list(check.about),
            }
            for check in blockers
        ]
