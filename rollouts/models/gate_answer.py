from datetime import datetime, timedelta
from typing import Any

from django.db import models
from django.db.models import Q

from rollouts.gates.base import UNTESTED, Answer, GateResult
from rollouts.gates.window import comes_by_itself
from wording.reports import LONGEST_SUMMARY, LONGEST_TITLE, sentence_of, written_report

LONGEST_CAUSE = 200
LONGEST_REASON = 1000
REPORT = ("title", "summary", "evidence", "steps")
BLIND = timedelta(seconds=60)  # after such a gap an answer starts again: nobody evaluated meanwhile


class KeptAnswer(models.Model):
    gate = models.CharField(max_length=63)
    answer = models.CharField(max_length=8)
    cause = models.CharField(max_length=LONGEST_CAUSE, blank=True)  # why it answers so, without its numbers
    title = models.CharField(max_length=LONGEST_TITLE)
    summary = models.CharField(max_length=LONGEST_SUMMARY, blank=True)
    evidence = models.JSONField(default=list)  # objects of label, value and unit
    steps = models.JSONField(default=list)
    nodes = models.JSONField(default=list)
    since = models.DateTimeField()  # when this answer began
    at = models.DateTimeField()  # when it was last given
    is_current = models.BooleanField(default=True)

    class Meta:
        abstract = True

    @property
    def sentence(self) -> str:
        return sentence_of(self.title, self.summary)

    def value_of(self, label: str) -> Any:
        """Returns the value of an evidence item; None without such an item."""
        return next((item["value"] for item in self.evidence if item["label"] == label), None)

    @property
    def is_untested(self) -> bool:
        return self.answer == Answer.WAIT and self.cause == UNTESTED

    def has_same_cause(self, other: "KeptAnswer") -> bool:
        return (self.answer, self.cause, self.nodes) == (other.answer, other.cause, other.nodes)

    def has_same_content(self, other: "KeptAnswer") -> bool:
        """Returns whether text, evidence and start are equal, so that only the time differs."""
        return self.has_same_cause(other) and self.moving == other.moving

    @property
    def report(self) -> dict[str, Any]:
        """Returns title, summary, evidence and steps as files and audit entries store them."""
        return {name: getattr(self, name) for name in REPORT}

    @property
    def moving(self) -> dict[str, Any]:
        return self.report | {"since": self.since}


def answer_columns(
    result: GateResult, before: KeptAnswer | None, *, is_anew: bool = False, now: datetime
) -> dict[str, Any]:
    """Returns the row's values. The result keeps its start unless evidence was missing in between.

    `is_anew` restarts it, since nobody was to be asked about it until now.
    """
    is_watched = before is not None and now - before.at <= BLIND
    goes_on = before is not None and before.answer == result.answer and is_watched and not is_anew
    return {
        "answer": result.answer,
        "cause": result.cause[:LONGEST_CAUSE],
        **written_report(result),
        "nodes": list(result.nodes),
        "since": before.since if before is not None and goes_on else now,
        "at": now,
    }


class GateAnswer(KeptAnswer):
    """A gate result of a stage: one current row per gate.

    Another row is added when the result or its cause changes, and after each move that rested on it. Such rows never
    change.
    """

    stage = models.ForeignKey("rollouts.Stage", models.CASCADE, related_name="answers")
    is_advisory = models.BooleanField(default=False)  # shown and stored, never counted
    rested_on_at = models.DateTimeField(null=True)  # when a move of its stage or plan used it; null: no move

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["stage", "gate"], condition=Q(is_current=True), name="one_current_answer_per_gate"
            ),
        ]
        ordering = ["stage_id", "gate", "-pk"]

    @property
    def comes_by_itself(self) -> bool:
        """Returns whether the gate counts and its wait ends by itself, so that nobody is asked."""
        return not self.is_advisory and comes_by_itself(self.gate, self.cause)
