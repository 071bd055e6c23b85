from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db import models
from django.db.models import Q


class GateAnswer(models.Model):
    """What a gate answered. One current row a gate, whose numbers move; one more row whenever the answer changes."""

    stage = models.ForeignKey("rollouts.Stage", models.CASCADE, related_name="answers")
    gate = models.CharField(max_length=63)
    answer = models.CharField(max_length=8)
    because = models.CharField(max_length=1000)
    measured = models.JSONField(default=list, encoder=DjangoJSONEncoder)  # pairs: a jsonb orders keys as it likes
    nodes = models.JSONField(default=list)
    since = models.DateTimeField()  # when this answer began
    at = models.DateTimeField()  # when it was last given
    is_current = models.BooleanField(default=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["stage", "gate"], condition=Q(is_current=True), name="one_current_answer_per_gate"
            ),
        ]
        ordering = ["stage", "gate", "-pk"]

    @property
    def numbers(self) -> dict[str, Any]:
        """What was compared with what, in the gate's own order."""
        return dict(self.measured)
