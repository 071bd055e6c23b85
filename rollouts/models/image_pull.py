from __future__ import annotations

from datetime import datetime, timedelta

from django.db import models
from django.db.models import Q

from fleet.models.visible import Visible
from operations.models.leased import Leased
from operations.test_jobs.pull_job import WantedPull
from operations.test_jobs.pull_progress import PullOutcome

LEASE = timedelta(seconds=20)  # a round asks for a few Jobs; a killed worker costs this much


class ImagePullQuerySet(Visible["ImagePull"]):
    by_cluster = "plan__cluster"

    def in_force(self) -> ImagePullQuerySet:
        """Returns the pulls with something in the cluster, or something to come."""
        return self.filter(ended_at__isnull=True)

    def due(self, *, now: datetime) -> ImagePullQuerySet:
        return self.in_force().filter(next_look_at__lte=now)


class ImagePull(Leased):
    """A request to pull a plan's driver image before it is needed, with its progress."""

    lease_for = LEASE

    plan = models.ForeignKey("rollouts.Plan", models.CASCADE, related_name="image_pulls")
    to_version = models.CharField(max_length=64)  # the plan's when it was asked: a draft may be edited
    nodes_each = models.PositiveSmallIntegerField()  # of each operating system
    asked_by = models.CharField(max_length=150)
    asked_at = models.DateTimeField()
    reason = models.CharField(max_length=1000)
    key = models.CharField(max_length=100, blank=True)  # chosen by the requester: see `edges.idempotency`
    left_out = models.CharField(max_length=500, blank=True)  # nodes whose image is unknown

    ends_reason = models.CharField(max_length=1000, blank=True)  # why no more Jobs are made; blank: they are
    ends_by = models.CharField(max_length=150, blank=True)
    ended_at = models.DateTimeField(null=True)  # when nothing of it was left in the cluster

    waiting_for = models.CharField(max_length=1000, blank=True)  # why it does not go on; blank: it does

    objects = ImagePullQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["plan"], condition=Q(ended_at__isnull=True), name="one_image_pull_in_force_per_plan"
            ),
            models.UniqueConstraint(
                fields=["plan", "asked_by", "key"], condition=~Q(key=""), name="one_image_pull_per_key"
            ),
        ]
        indexes = [models.Index(fields=["next_look_at"], condition=Q(ended_at=None), name="image_pulls_due")]
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"image pull {self.pk} of plan-{self.plan_id}"

    @property
    def is_in_force(self) -> bool:
        """Returns the same as the query `in_force`."""
        return self.ended_at is None

    def its_row(self) -> ImagePullQuerySet:
        return ImagePull.objects.in_force().filter(pk=self.pk)

    def end_lease(self, *, now: datetime, next_look_at: datetime, waiting_for: str) -> None:
        """Ends the lease. An earlier time for the next round, set by a command, stays."""
        mine = ImagePull.objects.filter(pk=self.pk, epoch=self.epoch)
        mine.update(lease_until=now, waiting_for=waiting_for[:1000])
        mine.in_force().filter(next_look_at__gt=now).update(next_look_at=next_look_at)

    def stop(self, reason: str, *, by: str, now: datetime) -> bool:
        """Stops the pull and has its Jobs deleted; returns False if it was stopped or has ended."""
        going = ImagePull.objects.in_force().filter(pk=self.pk, ends_reason="")
        return bool(going.update(ends_reason=reason[:1000], ends_by=by, next_look_at=now))

    def end(self, *, now: datetime) -> bool:
        """Ends the pull, once nothing of it is in the cluster; returns False if somebody else has the turn."""
        left = PullJob.objects.filter(pull=self.pk).in_the_cluster()
        done = self.mine().exclude(pk__in=left.values("pull"))
        return bool(done.update(ended_at=now, next_look_at=None, waiting_for=""))


class PullJobQuerySet(models.QuerySet["PullJob"]):
    def in_the_cluster(self) -> PullJobQuerySet:
        """Returns the Jobs that may exist: recorded, and not read back as deleted."""
        return self.filter(intended_at__isnull=False, gone_at__isnull=True)

    def to_come(self) -> PullJobQuerySet:
        """Returns the Jobs without result that were not seen in the cluster."""
        return self.filter(outcome="", made_at__isnull=True, gone_at__isnull=True)


class PullJob(models.Model):
    """One image on one node by one Job. The row is the intent, written before the Job."""

    pull = models.ForeignKey(ImagePull, models.CASCADE, related_name="jobs")
    position = models.PositiveIntegerField()
    node_uid = models.CharField(max_length=64)
    node_name = models.CharField(max_length=253)
    daemonset_uid = models.CharField(max_length=64)  # the driver's on that node
    namespace = models.CharField(max_length=253)
    daemonset_name = models.CharField(max_length=253)
    driver_pod = models.CharField(max_length=253)
    system = models.CharField(max_length=128, blank=True)  # ubuntu22.04, as in the image's tag
    image = models.CharField(max_length=500)  # from rows first, then from the DaemonSet itself

    intended_at = models.DateTimeField(null=True)  # from here on the Job may be in the cluster
    made_at = models.DateTimeField(null=True)  # when it was read back
    failing_since = models.DateTimeField(null=True)  # when the pull was first seen to fail
    outcome = models.CharField(max_length=16, blank=True, choices=[(one.value, one.value) for one in PullOutcome])
    told_at = models.DateTimeField(null=True)  # of the outcome
    says = models.CharField(max_length=1000, blank=True)  # how it is, for a person
    said = models.CharField(max_length=500, blank=True)  # in the words of the registry, or of who else refused
    took = models.DurationField(null=True)
    gone_at = models.DateTimeField(null=True)  # when it was read as deleted
    trouble = models.CharField(max_length=500, blank=True)  # why it is not deleted

    objects = PullJobQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["pull", "position"], name="one_pull_job_per_position")]
        ordering = ["pull_id", "position"]

    @property
    def is_in_the_cluster(self) -> bool:
        """Returns the same as the query `in_the_cluster`."""
        return self.intended_at is not None and self.gone_at is None

    @property
    def wanted(self) -> WantedPull:
        """Returns what to create in the cluster. `pull` is read with it."""
        at = self.pull.asked_at.isoformat()
        return WantedPull(
            f"plan-{self.pull.plan_id}", self.pull_id, self.position, self.node_name, self.image, asked_at=at
        )

    @property
    def job_name(self) -> str:
        return self.wanted.name
