from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from django.db import models

from gpu.labels import GPU
from operations.models.test_job import TestJobOnNode
from operations.test_jobs.node_tests import NODE_TESTS


class TestJob(TestJobOnNode):
    """One test Job on one changed node."""

    owner, prefix = "plan", "quarterdeck-proof"

    plan = models.ForeignKey("rollouts.Plan", models.CASCADE, related_name="test_jobs")
    test = models.CharField(max_length=32, blank=True, default="", db_default="")  # template of its gate; blank: none
    metric = models.CharField(
        max_length=200, blank=True, default="", db_default=""
    )  # path of a number in its output; blank: none
    value = models.FloatField(null=True)  # the number of the metric; null: not printed, or no metric
    ran_s = models.FloatField(null=True)  # run time of its container; null: not passed, or unknown

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
    def paths(self) -> tuple[str, ...]:
        """Returns the paths of the numbers that are read from its output, the metric first."""
        test = NODE_TESTS.get(self.test)
        paths = dict.fromkeys((self.metric, *(test.numbers if test else ())))
        return tuple(path for path in paths if path)

    @property
    def printed(self) -> Mapping[str, float]:
        """Returns its numbers by path. Older rows have only the metric."""
        if self.numbers is None:
            return {} if self.value is None else {self.metric: self.value}
        return self.numbers

    @property
    def deadline(self) -> timedelta:
        test = NODE_TESTS.get(self.test)
        return test.deadline if test else super().deadline

    @property
    def gpu_time(self) -> timedelta:
        """Returns the GPU time of its container; 0 if it is unknown. Slices and shares count as one GPU together."""
        gpus = self.amount if self.resource == GPU else min(1, self.amount)
        return timedelta(seconds=gpus * (self.ran_s or 0.0))
