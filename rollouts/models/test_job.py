from __future__ import annotations

from django.db import models

from operations.test_jobs.test_job import WantedTestJob
from operations.test_jobs.test_progress import TestJobOutcome


class TestJobQuerySet(models.QuerySet["TestJob"]):
    def in_the_cluster(self) -> TestJobQuerySet:
        """Returns the Jobs that may exist: recorded, and not read back as deleted."""
        return self.filter(gone_at__isnull=True)


class TestJob(models.Model):
    """One test Job on one changed node. The row is the intent, written before the Job."""

    plan = models.ForeignKey("rollouts.Plan", models.CASCADE, related_name="test_jobs")
    node_uid = models.CharField(max_length=64)
    node_name = models.CharField(max_length=253)
    namespace = models.CharField(max_length=253)
    image = models.CharField(max_length=500)
    resource = models.CharField(max_length=253)
    amount = models.PositiveIntegerField()
    command = models.CharField(max_length=200, blank=True, default="", db_default="")  # blank: the image's own
    metric = models.CharField(
        max_length=200, blank=True, default="", db_default=""
    )  # path of a number in its output; blank: none
    value = models.FloatField(null=True)  # that number; null: it printed none, or none is asked

    intended_at = models.DateTimeField()  # from here on the Job may be in the cluster
    made_at = models.DateTimeField(null=True)  # when it was read back
    has_run = models.BooleanField(default=False)  # its container was seen to run
    outcome = models.CharField(max_length=16, blank=True, choices=[(one.value, one.value) for one in TestJobOutcome])
    told_at = models.DateTimeField(null=True)  # of the outcome
    says = models.CharField(max_length=1000, blank=True)  # how it is, for a person
    said = models.CharField(max_length=500, blank=True)  # in the words of its container, or of what keeps it
    gone_at = models.DateTimeField(null=True)  # when it was read back that it is not there any more
    trouble = models.CharField(max_length=500, blank=True)  # why it is not deleted

    objects = TestJobQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["plan", "node_uid"],
                condition=models.Q(gone_at__isnull=True),
                name="one_test_job_at_a_time_per_node",
            ),
        ]
        ordering = ["plan_id", "node_name", "pk"]

    @property
    def wanted(self) -> WantedTestJob:
        return WantedTestJob(
            f"plan-{self.plan_id}", self.pk, self.node_name, self.image, self.resource, self.amount,
            asked_at=self.intended_at.isoformat(), command=self.command,
        )  # fmt: skip

    @property
    def job_name(self) -> str:
        return self.wanted.name
