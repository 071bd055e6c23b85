from __future__ import annotations

from datetime import datetime, timedelta

from django.db import models
from django.db.models import Exists, OuterRef, Q

from fleet.models.domain_event import LONGEST_KEY
from notifications.channels.base import DeliveryAct

KEEP_LOG = timedelta(days=90)  # lifecycle R69


class DeliveryState(models.TextChoices):
    WAITING = "waiting"  # to be sent, or to be sent again
    SENT = "sent"  # the receiver accepted it
    DEAD = "dead", "given up"  # finally: `sentence` gives the reason; a person may send it again
    SKIPPED = "skipped"  # the receiver cannot use it


class DeliveryQuerySet(models.QuerySet["Delivery"]):
    def waiting(self) -> DeliveryQuerySet:
        return self.filter(state=DeliveryState.WAITING)

    def next_of_each_key(self) -> DeliveryQuerySet:
        """Returns of each key the oldest that waits, so that none overtakes another of its key."""
        earlier = Delivery.objects.waiting().filter(
            channel=OuterRef("channel"), key=OuterRef("key"), pk__lt=OuterRef("pk")
        )
        return self.waiting().filter(~Exists(earlier)).order_by("pk")

    def due(self, *, now: datetime) -> DeliveryQuerySet:
        return self.next_of_each_key().filter(next_try_at__lte=now)


class Delivery(models.Model):
    """One message to one channel, with its attempts: a line of the delivery log."""

    channel = models.ForeignKey("notifications.Channel", models.SET_NULL, null=True, related_name="deliveries")
    channel_name = models.CharField(max_length=63)  # outlives the channel
    route_name = models.CharField(max_length=100, blank=True)
    event = models.ForeignKey("fleet.DomainEvent", models.SET_NULL, null=True, related_name="deliveries")
    key = models.CharField(max_length=LONGEST_KEY)
    act = models.CharField(max_length=8, choices=[(act.value, act.value) for act in DeliveryAct])
    message = models.JSONField()
    digest = models.CharField(max_length=64)  # SHA-256 of the message

    state = models.CharField(max_length=8, choices=DeliveryState.choices, default=DeliveryState.WAITING)
    created_at = models.DateTimeField()
    next_try_at = models.DateTimeField()
    attempts = models.PositiveSmallIntegerField(default=0)
    tried_at = models.DateTimeField(null=True)  # when the last attempt began
    ended_at = models.DateTimeField(null=True)
    status = models.PositiveSmallIntegerField(default=0)  # of HTTP or SMTP; 0: there was no answer
    sentence = models.CharField(max_length=600, blank=True)  # the receiver's own words
    took_ms = models.PositiveIntegerField(null=True)  # the last attempt
    ref = models.CharField(max_length=255, blank=True)  # the receiver's own key
    asked_by = models.CharField(max_length=150, blank=True)  # who tests the channel, or sends it again

    objects = DeliveryQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["event", "channel", "key"], condition=Q(asked_by=""), name="one_delivery_per_event"
            )
        ]
        indexes = [
            models.Index(fields=["channel", "key", "id"], name="deliveries_that_wait", condition=Q(state="waiting")),
            models.Index(fields=["channel", "act", "created_at"]),
            models.Index(fields=["created_at"]),
        ]
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.act} of {self.key} to {self.channel_name}"

    @property
    def name(self) -> str:
        """Returns its name for receivers, the same in each attempt."""
        return f"quarterdeck-{self.pk}"
