from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import models
from django.db.models import Q

from fleet.models.visible import Visible
from operations.models.leased import Leased

LEASE = timedelta(seconds=60)  # a round renews it; a killed worker costs this much


class RehearsalQuerySet(Visible["Rehearsal"]):
    by_cluster = "plan__cluster"

    def in_force(self) -> RehearsalQuerySet:
        """Returns the rehearsals that a worker has still to run."""
        return self.filter(finished_at__isnull=True)

    def due(self, *, now: datetime) -> RehearsalQuerySet:
        return self.in_force().filter(next_look_at__lte=now)

    def newest_by_fault(self, revision: int) -> list[Rehearsal]:
        """Returns the newest outcome of this revision for each fault. One query."""
        done = self.filter(revision=revision, finished_at__isnull=False, trouble="")
        newest = {row.fault: row for row in done.order_by("pk")}
        return [newest[fault] for fault in sorted(newest)]


class Rehearsal(Leased):
    """A request to rehearse a draft in virtual time, with its outcome."""

    lease_for = LEASE
    queue_name = "default"  # seconds of computing must not delay a halt

    plan = models.ForeignKey("rollouts.Plan", models.CASCADE, related_name="rehearsals")
    revision = models.PositiveIntegerField()  # of the draft, when it was asked
    fault = models.CharField(max_length=63, blank=True)  # key in `rollouts.rehearsal.faults`; blank: none
    seed = models.PositiveIntegerField()  # chooses the nodes with the fault
    asked_by = models.CharField(max_length=150)
    asked_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)
    progress = models.JSONField(null=True)  # numbers of `released` and all `nodes`; null: it has just begun
    outcome = models.JSONField(default=dict)  # as `rollouts.rehearsal.outcome` writes it; empty: none
    trouble = models.CharField(max_length=1000, blank=True)  # why there is no outcome; blank: there is, or it runs

    objects = RehearsalQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["plan"], condition=Q(finished_at__isnull=True), name="one_rehearsal_in_force_per_plan"
            ),
        ]
        indexes = [models.Index(fields=["next_look_at"], condition=Q(finished_at=None), name="rehearsals_due")]
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"rehearsal {self.pk} of plan-{self.plan_id}"

    @property
    def is_in_force(self) -> bool:
        """Returns the same as the query `in_force`."""
        return self.finished_at is None

    def its_row(self) -> RehearsalQuerySet:
        return Rehearsal.objects.in_force().filter(pk=self.pk)

    def end(self, *, now: datetime, **written: Any) -> bool:
        """Records the outcome or the trouble; returns False if it has ended or the turn is another's."""
        return bool(self.mine().update(finished_at=now, next_look_at=None, lease_until=now, **written))
