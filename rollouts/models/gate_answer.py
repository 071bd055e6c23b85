from datetime import datetime, timedelta
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db import models
from django.db.models import Q

from rollouts.gates.base import UNTESTED, Answer, GateResult
from rollouts.gates.window import comes_by_itself

LONGEST_CAUSE = 200
LONGEST_REASON = 1000  # a gate says who gave a reason, and a reason alone has as many
BLIND = timedelta(seconds=60)  # an answer not given for so long has to begin anew: nobody was looking


class KeptAnswer(models.Model):
    gate = models.CharField(max_length=63)
    answer = models.CharField(max_length=8)
    cause = models.CharField(max_length=LONGEST_CAUSE, blank=True)  # why it answers so, without its numbers
    reason = models.CharField(max_length=LONGEST_REASON)
    measured = models.JSONField(default=list, encoder=DjangoJSONEncoder)  # pairs: a jsonb orders keys as it likes
    nodes = models.JSONField(default=list)
    since = models.DateTimeField()  # when this answer began
    at = models.DateTimeField()  # when it was last given
    is_current = models.BooleanField(default=True)

    class Meta:
        abstract = True

    @property
    def numbers(self) -> dict[str, Any]:
        """Returns the compared values in the gate's order."""
        return dict(self.measured)

    @property
    def is_untested(self) -> bool:
        return self.answer == Answer.WAIT and self.cause == UNTESTED

    def has_same_cause(self, other: "KeptAnswer") -> bool:
        return (self.answer, self.cause, self.nodes) == (other.answer, other.cause, other.nodes)

    def says_the_same(self, other: "KeptAnswer") -> bool:
        """Returns whether text, numbers and start are equal, so that only the time differs."""
        said = (self.reason, self.measured, self.since) == (other.reason, other.measured, other.since)
        return said and self.has_same_cause(other)


def said_by(result: GateResult, before: KeptAnswer | None, *, is_anew: bool = False, now: datetime) -> dict[str, Any]:
    """Returns the row's values. The result keeps its start unless evidence was missing in between.

    `is_anew` restarts it, since nobody was to be asked about it until now.
    """
    is_watched = before is not None and now - before.at <= BLIND
    goes_on = before is not None and before.answer == result.answer and is_watched and not is_anew
    return {
        "answer": result.answer,
        "cause": result.cause[:LONGEST_CAUSE],
        "reason": result.reason[:LONGEST_REASON],
        "measured": [[*pair] for pair in result.measured.items()],
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
    rested_on_at = models.DateTimeField(null=True)  # when a move of its stage or plan rested on it; null: none has

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
