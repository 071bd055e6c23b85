from datetime import datetime

from django.db import models

from fleet.models.visible import Visible


class BreakGlassQuerySet(Visible["BreakGlass"]):
    by_cluster = "stage__plan__cluster"

    def in_force(self, *, now: datetime) -> "BreakGlassQuerySet":
        return self.filter(until__gt=now)


class BreakGlass(models.Model):
    """A person's override of one gate of one stage for a while; it stays listed for good."""

    stage = models.ForeignKey("rollouts.Stage", models.CASCADE, related_name="glass")
    gate = models.CharField(max_length=63)
    said = models.CharField(max_length=1000)  # what the gate said when it was passed over
    by = models.CharField(max_length=150)
    at = models.DateTimeField()
    reason = models.CharField(max_length=1000)
    until = models.DateTimeField()  # from then on the gate counts again
    acknowledged_by = models.CharField(max_length=150, blank=True)  # never who broke it; blank: nobody has looked at it
    acknowledged_at = models.DateTimeField(null=True)

    objects = BreakGlassQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]

    def is_in_force(self, *, now: datetime) -> bool:
        """Returns the same as the query `in_force`."""
        return self.until > now
