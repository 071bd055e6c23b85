from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, ClassVar

from django.db import models

from operations.models.operation import Operation, OperationNode
from operations.test_jobs.node_tests import NODE_TESTS
from operations.test_jobs.test_job import DEADLINE, KERNEL_LOG, WantedTestJob
from operations.test_jobs.test_progress import TestJobOutcome


class TestJobQuerySet(models.QuerySet[Any]):
    def in_the_cluster(self) -> TestJobQuerySet:
        """Returns the Jobs that may exist: recorded, and not read back as deleted."""
        return self.filter(gone_at__isnull=True)


class TestJobOnNode(models.Model):
    """One test Job on one node. The row is the intent, written before the Job."""

    test: str | models.CharField[str, str] = ""  # key of NODE_TESTS; blank: none of them
    runtime_class: str | models.CharField[str, str] = ""
    claim_template: str | models.CharField[str, str] = ""
    requests: Any = None  # a number by resource
    owner: ClassVar[str]  # the foreign key to the owner; with the owner's key, its mark in the cluster
    prefix: ClassVar[str]  # of the Job's name: rows of one table share it

    node_uid = models.CharField(max_length=64)
    node_name = models.CharField(max_length=253)
    namespace = models.CharField(max_length=253)
    image = models.CharField(max_length=500)
    resource = models.CharField(max_length=253)
    amount = models.PositiveIntegerField()
    command = models.CharField(max_length=2000, blank=True, default="", db_default="")  # blank: the image's own
    # Properties of the node when its Job was intended, for comparison of its numbers. Blank: unknown.
    driver_version = models.CharField(max_length=64, blank=True, default="", db_default="")
    gpu_product = models.CharField(max_length=128, blank=True, default="", db_default="")
    numbers = models.JSONField(null=True)  # numbers in its output, by path; null: no metric, or not passed
    gpu_uuids = models.JSONField(null=True)  # of the GPUs that it had; null: unknown

    intended_at = models.DateTimeField()  # from here on the Job may be in the cluster
    made_at = models.DateTimeField(null=True)  # when it was read back
    has_run = models.BooleanField(default=False)  # its container ran
    outcome = models.CharField(max_length=16, blank=True, choices=[(one.value, one.value) for one in TestJobOutcome])
    told_at = models.DateTimeField(null=True)  # of the outcome
    says = models.CharField(max_length=1000, blank=True)  # how it is, for a person
    said = models.CharField(max_length=500, blank=True)  # message of its container, or why it does not run
    gone_at = models.DateTimeField(null=True)  # when it was read as deleted
    trouble = models.CharField(max_length=500, blank=True)  # why it is not deleted

    objects = TestJobQuerySet.as_manager()

    class Meta:
        abstract = True

    @property
    def printed(self) -> Mapping[str, float]:
        """Returns its numbers by path."""
        return self.numbers or {}

    @property
    def deadline(self) -> timedelta:
        """Returns how long it may take from its creation, the pull of its image included."""
        return DEADLINE

    @property
    def wanted(self) -> WantedTestJob:
        test = NODE_TESTS.get(self.test)
        resources = {"cpu": test.cpu, "memory": test.memory, "shm": test.shm} if test else {}
        return WantedTestJob(
            f"{self.owner}-{getattr(self, f'{self.owner}_id')}", self.pk, self.node_name, self.image, self.resource,
            self.amount, asked_at=self.intended_at.isoformat(), command=self.command, prefix=self.prefix,
            deadline=self.deadline, runtime_class=self.runtime_class, reads_kernel_log=self.test == KERNEL_LOG,
            claim_template=self.claim_template, requests=self.requests or {},
            **resources,
        )  # fmt: skip

    @property
    def job_name(self) -> str:
        return self.wanted.name


class NodeTestJob(TestJobOnNode):
    """The test Job of one node of an operation."""

    owner, prefix = "operation", "quarterdeck-test"

    operation = models.ForeignKey(Operation, models.CASCADE, related_name="test_jobs")
    test = models.CharField(max_length=32)  # key of NODE_TESTS
    runtime_class = models.CharField(max_length=253, blank=True)  # of a pod that requests no GPU; blank: the default
    claim_template = models.CharField(max_length=253, blank=True, default="", db_default="")  # blank: it claims nothing
    requests = models.JSONField(null=True)  # a number by resource, of partitioned GPUs; null: resource and amount
    devices = models.PositiveIntegerField(null=True)  # GPUs or MIG devices that it tests; null: the amount
    output = models.TextField(blank=True)  # of a debug pod, with likely secrets redacted
    diag = models.JSONField(null=True)  # of `dcgmi diag --json`: `DiagReport.as_kept`; null: it printed no report
    deadline_s = models.PositiveIntegerField()  # from its creation, the pull of its image included
    pull_pod = models.JSONField(null=True)  # of an image pull: the fields of `PullPod`; null: no image pull
    failing_since = models.DateTimeField(null=True)  # when an image pull was first seen to fail; null: it does not

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["node_uid"],
                condition=models.Q(gone_at__isnull=True),
                name="one_test_job_of_operations_per_node",
            ),
        ]
        indexes = [models.Index(fields=["operation"], condition=models.Q(gone_at=None), name="test_jobs_in_cluster")]
        ordering = ["operation_id", "node_name", "pk"]

    def __str__(self) -> str:
        return self.job_name

    @property
    def deadline(self) -> timedelta:
        return timedelta(seconds=self.deadline_s)

    def is_of(self, node: OperationNode) -> bool:
        """Returns whether it belongs to the step in progress, and not to an earlier try."""
        return self.node_uid == node.node_uid and node.step_since is not None and self.intended_at >= node.step_since
