from datetime import datetime

from django.core.serializers.json import DjangoJSONEncoder
from django.db import models
from django.db.models import Q

from fleet.models.visible import Visible


class ApprovalQuerySet(models.QuerySet["Approval"]):
    def standing(self) -> "ApprovalQuerySet":
        return self.filter(void_at__isnull=True)


class Approval(models.Model):
    """A person's decision on exactly the bundle that they saw: plan, stage, targets and gate results."""

    stage = models.ForeignKey("rollouts.Stage", models.CASCADE, related_name="approvals")
    bundle = models.JSONField(encoder=DjangoJSONEncoder)
    bundle_hash = models.CharField(max_length=64)
    by = models.CharField(max_length=150)
    at = models.DateTimeField()
    is_rejection = models.BooleanField(default=False)
    reason = models.CharField(max_length=1000, blank=True)
    void_at = models.DateTimeField(null=True)
    void_reason = models.CharField(max_length=500, blank=True)

    objects = ApprovalQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["stage", "by"], condition=Q(void_at__isnull=True), name="one_standing_decision_per_person"
            ),
        ]
        ordering = ["-pk"]

    @property
    def is_standing(self) -> bool:
        """Returns the same as the query `standing`."""
        return self.void_at is None


class GateOverrideQuerySet(Visible["GateOverride"]):
    by_cluster = "stage__plan__cluster"

    def in_force(self, *, now: datetime) -> "GateOverrideQuerySet":
        return self.filter(until__gt=now)


class GateOverride(models.Model):
    """A person's override of one gate of one stage for a while; it stays listed for good."""

    stage = models.ForeignKey("rollouts.Stage", models.CASCADE, related_name="overrides")
    gate = models.CharField(max_length=63)
    said = models.CharField(max_length=1000)  # gate result when it was overridden
    by = models.CharField(max_length=150)
    at = models.DateTimeField()
    reason = models.CharField(max_length=1000)
    until = models.DateTimeField()  # afterwards the gate counts again
    acknowledged_by = models.CharField(max_length=150, blank=True)  # never who broke it; blank: nobody has looked at it
    acknowledged_at = models.DateTimeField(null=True)

    objects = GateOverrideQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]

    def is_in_force(self, *, now: datetime) -> bool:
        """Returns the same as the query `in_force`."""
        return self.until > now


class ShownBundle(models.Model):
    """A bundle that somebody was shown, by its hash; tells what has changed since."""

    stage = models.ForeignKey("rollouts.Stage", models.CASCADE, related_name="shown_bundles")
    hash = models.CharField(max_length=64)
    content = models.JSONField(encoder=DjangoJSONEncoder)
    at = models.DateTimeField()  # when it was first shown

    class Meta:
        constraints = [models.UniqueConstraint(fields=["stage", "hash"], name="one_shown_bundle_per_hash")]
