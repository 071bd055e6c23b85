"""The reply of one check."""

from datetime import datetime
from typing import NamedTuple

from health.stack.causes import Cause, Weight
from health.stack.checklist import ChecklistAnswer


class Reply(NamedTuple):
    answer: ChecklistAnswer
    sentence: str
    steps: tuple[str, ...] = ()
    at: datetime | None = None  # of the evidence; None: the last update of the pods


NO_NODE = "The pod has no node yet."


def yes(sentence: str, *, at: datetime | None = None) -> Reply:
    return Reply(ChecklistAnswer.YES, sentence, (), at)


def no(sentence: str, *steps: str, at: datetime | None = None) -> Reply:
    return Reply(ChecklistAnswer.NO, sentence, steps, at)


def unknown_reply(sentence: str, *steps: str, at: datetime | None = None) -> Reply:
    return Reply(ChecklistAnswer.UNKNOWN, sentence, steps, at)


def by_cause(cause: Cause, *, at: datetime | None = None) -> Reply:
    """Returns the reply that a cause gives. A cause that passes by itself is no fault, and no pass either."""
    answer = ChecklistAnswer.NO if cause.weight is Weight.WRONG else ChecklistAnswer.UNKNOWN
    return Reply(answer, cause.sentence, cause.steps, at)
