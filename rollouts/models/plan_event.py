from django.db import models

MISSED_GATE = "missed-gate"  # of a note: the gate that would have stopped the plan earlier
SUSPECTS = "suspects"  # kind of a note: properties that failed nodes share and good nodes lack
OF_HALTS = (SUSPECTS, MISSED_GATE)  # the notes that a worker adds to a halt


class PlanEvent(models.Model):
    """An entry of a plan's history, written with the move and never edited; browsers count by its key."""

    plan = models.ForeignKey("rollouts.Plan", models.CASCADE, related_name="events")
    stage = models.ForeignKey("rollouts.Stage", models.CASCADE, null=True, related_name="events")
    target = models.ForeignKey("rollouts.Target", models.CASCADE, null=True, related_name="events")
    what = models.CharField(max_length=16)  # plan, stage, target, gate, approval, command, note
    was = models.CharField(max_length=16, blank=True)
    to = models.CharField(max_length=32)
    at = models.DateTimeField()
    actor = models.CharField(max_length=150)
    reason = models.CharField(max_length=1000, blank=True)

    class Meta:
        indexes = [models.Index(fields=["plan", "-id"])]
        ordering = ["-pk"]
