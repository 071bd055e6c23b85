from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import models
from django.db.models import F, Q

from fleet.models.visible import Visible
from operations.models.leased import Leased

LEASE = timedelta(seconds=60)  # a round asks for 30 s at most, and its last question for 15; a killed worker costs this


class LiveCheckQuerySet(Visible["LiveCheck"]):
    by_cluster = "plan__cluster"

    def in_force(self) -> LiveCheckQuerySet:
        """Returns the live checks that a worker has still to run."""
        return self.filter(next_look_at__isnull=False)

    def due(self, *, now: datetime) -> LiveCheckQuerySet:
        return self.filter(next_look_at__lte=now)


class LiveCheck(Leased):
    """The last live check of a plan: requested by whom, for which revision, with its answers."""

    lease_for = LEASE

    plan = models.OneToOneField("rollouts.Plan", models.CASCADE, related_name="live_check")
    asked_by = models.CharField(max_length=150)
    asked_at = models.DateTimeField()
    revision = models.PositiveIntegerField()  # of the draft, when it was asked

    is_start = models.BooleanField(default=False)  # where nothing bars it, the plan is started
    reason = models.CharField(max_length=1000, blank=True)  # of a start, as are the next two
    override_reason = models.CharField(max_length=1000, blank=True)
    key = models.CharField(max_length=100, blank=True)

    answers = models.JSONField(default=list)  # `LiveAnswer.written` of each; kept until the next ones are there
    answered_at = models.DateTimeField(null=True)
    answered_revision = models.PositiveIntegerField(null=True)
    outcome = models.CharField(max_length=1000, blank=True)  # why it led to no answers or to no start; blank: it did

    objects = LiveCheckQuerySet.as_manager()

    class Meta:
        indexes = [models.Index(fields=["next_look_at"], condition=~Q(next_look_at=None), name="live_checks_due")]

    def __str__(self) -> str:
        return f"live check of plan-{self.plan_id}"

    @property
    def is_in_force(self) -> bool:
        """Returns the same as the query `in_force`."""
        return self.next_look_at is not None

    def its_row(self) -> LiveCheckQuerySet:
        return LiveCheck.objects.in_force().filter(pk=self.pk)

    def ask(self, *, now: datetime, **asked: Any) -> bool:
        """Requests a check and takes the turn of a running one; returns False if somebody has requested one since."""
        same = LiveCheck.objects.filter(pk=self.pk, epoch=self.epoch)
        return bool(
            same.update(epoch=F("epoch") + 1, asked_at=now, next_look_at=now, lease_until=now, outcome="", **asked)
        )

    def put_off(self, *, next_look_at: datetime, now: datetime) -> None:
        self.mine().update(lease_until=now, next_look_at=next_look_at)

    def end(self, **written: Any) -> bool:
        """Records the result; returns False if it has ended or the turn is another's."""
        return bool(self.mine().update(next_look_at=None, **written))
