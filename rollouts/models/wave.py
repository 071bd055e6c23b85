from django.db import models


class Wave(models.Model):
    """The nodes of a stage that are released together. The intent: written before the first label."""

    stage = models.ForeignKey("rollouts.Stage", models.CASCADE, related_name="waves")
    number = models.PositiveIntegerField()  # 1, 2, 3 …
    decided_at = models.DateTimeField()
    reason = models.CharField(max_length=500)  # how large it was allowed to be, and by what

    class Meta:
        constraints = [models.UniqueConstraint(fields=["stage", "number"], name="one_wave_per_number")]
        ordering = ["stage_id", "number"]
