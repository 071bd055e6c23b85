from __future__ import annotations

from typing import Any

from django.db import models

from operations.test_jobs.test_job import WantedTestJob
from operations.test_jobs.test_progress import TestJobOutcome


class TestJobQuerySet(models.QuerySet[Any]):
    def in_the_cluster(self) -> TestJobQuerySet:
        """Returns the Jobs that may exist: recorded, and not read back as deleted."""
        return self.filter(gone_at__isnull=True)


class TestJobOnNode(models.Model):
    """One test Job on one node. The row is the intent, written before the Job."""

    node_uid = models.CharField(max_length=64)
    node_name = models.CharField(max_length=253)
    namespace = models.CharField(max_length=253)
    image = models.CharField(max_length=500)
    resource = models.CharField(max_length=253)
    amount = models.PositiveIntegerField()
    command = models.CharField(max_length=200, blank=True, default="", db_default="")  # blank: the image's own

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
        abstract = True

    @property
    def wanted(self) -> WantedTestJob:
        raise NotImplementedError

    @property
    def job_name(self) -> str:
        return self.wanted.name
