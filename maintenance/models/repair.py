from django.db import models
from django.db.models import Q

from maintenance.lifecycle import RepairAnswer, RepairKind
from maintenance.models.case import LONGEST_REASON, NodeCase


class Repair(models.Model):
    """A repair that a person was asked for, with the answer. The case waits for it."""

    case = models.ForeignKey(NodeCase, models.CASCADE, related_name="repairs")
    kind = models.CharField(max_length=16, choices=[(kind.value, kind.value) for kind in RepairKind])
    asked_by = models.CharField(max_length=150)
    asked_at = models.DateTimeField()
    note = models.CharField(max_length=LONGEST_REASON)
    link = models.CharField(max_length=500, blank=True)  # of a ticket
    deadline = models.DateTimeField()
    came_from = models.CharField(max_length=16)  # the state to which a repair that is not done returns
    boot_id = models.CharField(max_length=64, blank=True)  # of the node when it was asked; blank: not reported
    answer = models.CharField(max_length=16, blank=True, choices=[(each.value, each.value) for each in RepairAnswer])
    answered_by = models.CharField(max_length=150, blank=True)
    answer_note = models.CharField(max_length=LONGEST_REASON, blank=True)
    ended_at = models.DateTimeField(null=True)  # null: no answer, or a reboot that is not proven

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["case"], condition=Q(ended_at=None), name="one_repair_at_a_time_per_case"),
        ]
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.kind} of {self.case}"
