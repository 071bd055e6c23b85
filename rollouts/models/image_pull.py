from __future__ import annotations

from django.db import models

from fleet.models.visible import Visible
from operations.lifecycle import IN_PROGRESS
from operations.models import Operation


class PlanPullQuerySet(Visible["PlanPull"]):
    by_cluster = "plan__cluster"

    def in_progress(self) -> PlanPullQuerySet:
        return self.filter(operation__state__in=sorted(IN_PROGRESS))


class PlanPull(models.Model):
    """The operation that pulls a plan's driver image before it is needed."""

    plan = models.ForeignKey("rollouts.Plan", models.CASCADE, related_name="image_pulls")
    operation = models.OneToOneField(Operation, models.CASCADE, related_name="plan_pull")
    to_version = models.CharField(max_length=64)  # the plan's when it was asked: a draft may be edited
    nodes_each = models.PositiveSmallIntegerField()  # of each operating system
    left_out = models.CharField(max_length=500, blank=True)  # nodes whose image is unknown

    objects = PlanPullQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"image pull of plan-{self.plan_id} by {self.operation.mark}"
