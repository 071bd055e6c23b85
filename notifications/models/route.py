from datetime import datetime, timedelta

from django.db import models

from notifications.models.channel import Channel
from notifications.quiet_hours import QuietHours

LONGEST_NAME = 100
ESCALATES_AFTER_MIN = 15
CATCH_ALL, LAST = "Everything else", 1_000_000


class Route(models.Model):
    """A rule that names the channels of an event. The first one that matches decides; the last one matches all.

    An empty list matches everything. Places and rules are names, so that a removed one matches nothing.
    """

    name = models.CharField(max_length=LONGEST_NAME, unique=True)
    position = models.PositiveIntegerField(unique=True)
    is_catch_all = models.BooleanField(default=False)  # the one that is always there, at the end
    places = models.JSONField(default=list)  # "eu-1", "eu-1/h200"
    severities = models.JSONField(default=list)
    kinds = models.JSONField(default=list)  # keys of rules, or "plan"
    workload_classes = models.JSONField(default=list)
    channels = models.ManyToManyField(Channel, related_name="routes")
    escalates_to = models.ForeignKey(Channel, models.PROTECT, null=True, related_name="escalating_routes")
    escalates_after_min = models.PositiveSmallIntegerField(
        default=ESCALATES_AFTER_MIN, db_default=ESCALATES_AFTER_MIN
    )  # without an answer of a person
    quiet = models.JSONField(default=dict, db_default={})  # QuietHours; empty: none
    changed_by = models.CharField(max_length=150, blank=True)
    changed_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["is_catch_all"], condition=models.Q(is_catch_all=True), name="one_catch_all"
            )
        ]
        ordering = ["position"]

    def __str__(self) -> str:
        return self.name

    @property
    def its_channels(self) -> list[Channel]:
        """Returns those that are switched on. No query if they are prefetched."""
        return [channel for channel in self.channels.all() if channel.is_on]

    @property
    def quiet_hours(self) -> QuietHours | None:
        return QuietHours.read(self.quiet)

    @property
    def escalates_after(self) -> timedelta:
        return timedelta(minutes=self.escalates_after_min)

    def held_until(self, severity: str, *, now: datetime) -> datetime | None:
        """Returns when a message is sent that its quiet hours hold back; None: at once."""
        hours = self.quiet_hours
        return hours.end_of(now) if hours and hours.holds(severity) else None

    @classmethod
    def catch_all(cls) -> "Route":
        """Returns the route that matches everything. It is always there."""
        given = {"name": CATCH_ALL, "position": LAST}
        return cls.objects.get_or_create(is_catch_all=True, defaults=given)[0]

    @classmethod
    def in_order(cls) -> "models.QuerySet[Route]":
        cls.catch_all()
        return cls.objects.order_by("position")
