from __future__ import annotations

from datetime import datetime, timedelta

from django.db import models

from fleet.models import Cluster, Pool
from operations.models.freeze import RestraintQuerySet, words_of
from rollouts.windows import Schedule


class MaintenanceWindow(models.Model):
    """A maintenance window: where a cluster or pool has any, nothing is released outside of them.

    Rollbacks are not bound.
    """

    cluster = models.ForeignKey(Cluster, models.PROTECT, related_name="windows")
    pool = models.ForeignKey(Pool, models.PROTECT, null=True, related_name="windows")  # null: all of the cluster
    rule = models.CharField(max_length=200)  # RRULE of RFC 5545, without a time of day
    first_day = models.DateField()  # DTSTART: INTERVAL and COUNT start here
    opens_at = models.TimeField()  # on the wall's clock of the zone
    zone = models.CharField(max_length=64)  # of the IANA data base
    duration_s = models.PositiveIntegerField()
    reason = models.CharField(max_length=1000, blank=True)  # purpose of the window
    by = models.CharField(max_length=150)
    at = models.DateTimeField()

    objects = RestraintQuerySet.as_manager()

    class Meta:
        verbose_name = "maintenance window"
        ordering = ["cluster", "pool", "pk"]

    def __str__(self) -> str:
        return f"{self.rule} at {self.opens_at:%H:%M} {self.zone}"

    @property
    def place(self) -> str:
        """Returns the scope as text. `cluster` and `pool` are read with it."""
        return words_of(self.cluster, self.pool)

    @property
    def mark(self) -> str:
        return f"window:{self.pk}"

    @property
    def schedule(self) -> Schedule:
        starts_at = datetime.combine(self.first_day, self.opens_at)
        return Schedule(self.rule, starts_at, self.zone, timedelta(seconds=self.duration_s))
