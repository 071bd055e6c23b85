from __future__ import annotations

from datetime import timedelta

from django.db import models

from gpu.labels import GPU
from operations.models.test_job import TestJobOnNode


class TestJob(TestJobOnNode):
    """One test Job on one changed node."""

    owner, prefix = "plan", "quarterdeck-proof"

    plan = models.ForeignKey("rollouts.Plan", models.CASCADE, related_name="test_jobs")
    metric = models.CharField(
        max_length=200, blank=True, default="", db_default=""
    )  # path of a number in its output; blank: none
    value = models.FloatField(null=True)  # that number; null: it printed none, or none is asked
    ran_s = models.FloatField(null=True)  # for how long its container ran; null: it has not passed, or nobody says
    # Of the node when its Job was intended: what the number is of. Blank: unknown.
    driver_version = models.CharField(max_length=64, blank=True, default="", db_default="")
    gpu_product = models.CharField(max_length=128, blank=True, default="", db_default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["plan", "node_uid"],
                condition=models.Q(gone_at__isnull=True),
                name="one_test_job_at_a_time_per_node",
            ),
        ]
        indexes = [models.Index(fields=["node_uid", "-told_at"])]
        ordering = ["plan_id", "node_name", "pk"]

    @property
    def gpu_time(self) -> timedelta:
        """Returns the GPU time of its container; 0 if it is unknown. Slices and shares count as one GPU together."""
        gpus = self.amount if self.resource == GPU else min(1, self.amount)
        return timedelta(seconds=gpus * (self.ran_s or 0.0))
