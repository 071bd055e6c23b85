from __future__ import annotations

from django.db import models

from operations.models.test_job import TestJobOnNode


class TestJob(TestJobOnNode):
    """One test Job on one changed node."""

    owner, prefix = "plan", "quarterdeck-proof"

    plan = models.ForeignKey("rollouts.Plan", models.CASCADE, related_name="test_jobs")
    metric = models.CharField(
        max_length=200, blank=True, default="", db_default=""
    )  # path of a number in its output; blank: none
    value = models.FloatField(null=True)  # that number; null: it printed none, or none is asked
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
