from django.core.serializers.json import DjangoJSONEncoder
from django.db import models
from django.db.models import Q


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
